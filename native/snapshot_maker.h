/* What the two files share that make a snapshot: what it is made of so far, and what is known of each register. */
#ifndef MD_SNAPSHOT_MAKER_H
#define MD_SNAPSHOT_MAKER_H

#include "snapshot.h"

/* Makes room for one more item; false with no memory. */
bool md_vector_grow(void *vector, size_t size);

#define APPEND(vector, ...) \
    (md_vector_grow(&(vector), sizeof(*(vector).items)) && ((vector).items[(vector).count++] = __VA_ARGS__, true))

/* What is known of a register. */
typedef enum {
    MD_ANY,     /* it is loaded again each time */
    MD_ADDRESS, /* an object at the same address, alive */
    MD_SAME,    /* the same object as when the snapshot was made */
    MD_LATE,    /* it is loaded again, at the end */
} MdKnown;

typedef struct {
    MdGuards *self;
    MdSnapshot *snapshot;
    MdRun run;         /* pure, on the registers of the snapshot */
    MdKnown *states;
    const void **seen; /* addresses of words, open addressing */
    Py_ssize_t *where; /* and their numbers */
    size_t mask;
    VECTOR(TensorCheck) tensors; /* of registers that are known */
    bool knows_globals;
    bool failed; /* no memory, or something has changed since the run: no snapshot */
} MdMaker;

static inline PyObject *md_maker_value(const MdMaker *m, Py_ssize_t reg)
{
    return m->snapshot->registers[reg];
}

static inline bool md_maker_knows(const MdMaker *m, Py_ssize_t reg)
{
    return m->states[reg] == MD_ADDRESS || m->states[reg] == MD_SAME;
}

/* The number of the word at this address, which is added if it is new; -1 with no memory. What lies at the address is
 * alive while the words added before are as they are. */
Py_ssize_t md_maker_word(MdMaker *m, const void *at);
/* The same of a word that is as it is while no dict has changed: see md_dict_epoch. */
Py_ssize_t md_maker_dict_word(MdMaker *m, const void *at);

/* ---- snapshot_known.c ---- */

/* What is known of the register of a load, whose value is in its register already. */
MdKnown md_known_of_load(MdMaker *m, const MdInstr *ins, int32_t number);
/* Need a check (that holds now) not be run again? */
bool md_known_check(MdMaker *m, const MdInstr *ins);

#endif
