"""The pure core: columns of files in, columns of split groups out."""
