"""The functions of the corpus, a file for each part of the language. `tests.pycode.corpus` collects them."""
