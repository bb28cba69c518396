"""One self-contained page that shows why to believe a model."""
