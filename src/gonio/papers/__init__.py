"""The source papers, one a file: their examples as data, their results as functions that return numbers and draw."""
