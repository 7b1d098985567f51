"""What strangers send, read in processes of their own."""
