"""The layer that knows CPython: everything above it sees one canonical instruction set and no version.

| module | concept |
|---|---|
| `instruction` | one canonical instruction |
| `canon` | the table of the canonical instruction set |
| `lift` | a code object -> `CodeIR` (canonical instructions and exception regions) |
| `liveness` | which locals are live at an instruction |
| `expr` | values that describe code to emit |
| `flatten`, `statements` | the values -> instructions, spelled for the running CPython |
| `lower` | the values -> a new code object |
| `stackmap` | what lies on the stack before an instruction |
| `resume` | a code object that continues another one at an instruction |
| `verify` | the checks on every code object that is made here |
| `tables` | reading and writing of exception and line tables |
| `identity` | caches keyed by the identity of a code object |
| `versions` | what the supported CPythons disagree on; the only place with version checks |

Nothing here imports torch or the extension module.
"""
