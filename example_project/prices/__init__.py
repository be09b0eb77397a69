"""A price monitor in cells, and the hostile shop it watches."""
