"""Repair of invalid polygons with shapely's make_valid."""

from __future__ import annotations


def repair_polygons(wkt: str) -> str:
    """The repaired polygons as WKT; empty if nothing with an area is left.

    The method "structure" adds up the shells and subtracts the holes: overlapping parts are merged, and a hole outside
    its shell becomes a part. Lines and points that are left of collapsed parts are dropped.
    """
    import shapely  # type: ignore[import-untyped]

    geometry = shapely.from_wkt(wkt, on_invalid="ignore")
    if geometry is None:
        return ""
    made = shapely.make_valid(geometry, method="structure", keep_collapsed=False)
    parts = shapely.get_parts(shapely.get_parts(made))  # polygons of multipolygons in collections
    polygons = [part for part in parts if part.geom_type == "Polygon" and part.area > 0]
    if not polygons:
        return ""
    whole = polygons[0] if len(polygons) == 1 else shapely.multipolygons(polygons)
    if not shapely.is_valid(whole):  # parts of a collection may overlap
        whole = shapely.union_all(polygons)
    text: str = shapely.to_wkt(whole, rounding_precision=-1)
    return text
