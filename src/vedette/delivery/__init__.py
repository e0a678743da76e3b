"""Delivery of events to webhooks: signed POST requests, retries, and the table of what could not be delivered."""
