"""Whether a study can be trained, and whether trainers and programs keep to what `engine.base` asks of them."""
