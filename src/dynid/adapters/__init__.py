"""One module per library that several rooms use; each turns that library's failures into dynid's."""
