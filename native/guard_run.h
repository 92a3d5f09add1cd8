/* What the files of the guard machine share: one run of a program, and what it remembers of earlier ones. */
#ifndef MD_GUARD_RUN_H
#define MD_GUARD_RUN_H

#include "guard_vm.h"

typedef struct {
    const MdGuards *self;
    PyObject *const *values;
    PyObject **registers; /* NULL until loaded */
    bool pure; /* registers are borrowed; instructions that might run Python code or the collector say UNSURE */
    TensorTls tls;
} MdRun;

/* An instruction says: 1 it holds (or is loaded), 0 it does not, -1 with an exception that it raised, or */
#define MD_UNSURE (-2)
int md_guard_step(MdRun *run, const MdInstr *ins);

/* Calls what may be the user's code, nothing of which is captured: the truth of its result, or -1. */
int md_guard_call(PyObject *callable, PyObject *const *args, Py_ssize_t count);

/* The inputs that a run has loaded, as references of the receiver. 1, or -1 with MemoryError. */
int md_guards_hand_over(MdRun *run, MdInputs *inputs);

/* ---- snapshots (snapshot_make.c, guard_snapshot.c) ----
 *
 * What a successful run has seen, so that the next one need not load it again: most guards are about things that rarely
 * change. A snapshot is a list of words in memory and what they were: types of objects, pointers to instance dictionaries,
 * versions of dictionaries and types, lengths. While all are as they were, the registers loaded through them hold the same
 * objects and the checks on them hold; only the rest of the program is run. A word lies in an object that other words show
 * to be alive; it belongs to a later wave than they, and waves are compared one after another. */
typedef struct MdSnapshot MdSnapshot;

/* Makes a snapshot of the values of a run, after it has succeeded. NULL without an exception where none can be made. */
MdSnapshot *md_snapshot_new(MdGuards *self, PyObject *const *values, const TensorTls *tls);
void md_snapshot_free(MdSnapshot *snapshot);
/* {what: how many}, for tests and reports. */
PyObject *md_snapshot_counts(const MdSnapshot *snapshot);

typedef enum {
    MD_SNAPSHOT_HOLDS, /* the program holds; the inputs have been handed over */
    MD_SNAPSHOT_FAILS, /* a guard does not hold (or an exception is set) */
    MD_SNAPSHOT_UNSURE, /* run the program */
    MD_SNAPSHOT_GONE, /* the same, and forget the snapshot */
} MdSnapshotVerdict;

/* Runs what is to be run. `inputs` may be NULL. */
MdSnapshotVerdict md_snapshot_run(MdGuards *self, PyObject *const *values, const TensorTls *tls, MdInputs *inputs);

#endif
