"""Reading files of strangers in separate processes."""
