"""Guards: rows, their text, the compiled check_fn, its diagnosis and its lowered program.

`guard` and `builder` turn guards into frozen `GuardRow`s; `text` prints and parses rows; `order` sorts them;
`check_fn` compiles the text; `leaves` are the `___` helpers that the text calls; `diagnose` says what failed;
`lower` turns rows into the flat program of the native machine.
"""
