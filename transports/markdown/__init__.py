"""What a model writes as one tree, from which every platform draws: nothing in it disappears."""
