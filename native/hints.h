/* Which entry to try first where a code object has many: the one that served the last call whose arguments looked alike.
 * A hint saves the walk over the entries before it; the entry's guards decide, as always. */
#ifndef MD_HINTS_H
#define MD_HINTS_H

#include "cache.h"

/* From so many entries on. */
#define MD_MANY_ENTRIES 8

typedef struct MdHint {
    uint64_t signature;
    MdEntry *entry; /* borrowed; NULL: free */
} MdHint;

/* What calls that need different entries are likely to differ in: values of constants, types and sizes of tensors, which
 * objects the others are. Runs no Python code. */
uint64_t md_hint_signature(const MdFlat *flat, PyFunctionObject *func);
/* The entry (borrowed), or NULL. */
MdEntry *md_hint_find(const MdCodeState *state, uint64_t signature);
/* Remembers that the entry has served such a call. Without memory it does not. */
void md_hint_set(MdCodeState *state, uint64_t signature, MdEntry *entry);
/* The entry leaves its code object. */
void md_hint_drop(MdCodeState *state, const MdEntry *entry);

#endif
