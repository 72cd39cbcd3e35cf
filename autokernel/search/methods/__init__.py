"""Search strategies, each a file; the engine does not import them."""
