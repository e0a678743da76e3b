"""Indexes: find the boxes that contain a row. One file per structure that the planner can choose."""
