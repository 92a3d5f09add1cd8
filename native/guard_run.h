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

/* ---- snapshots (snapshot_make.c, snapshot_known.c, guard_snapshot.c) ----
 *
 * What a successful run has seen, so that the next one need not load it again: most guards are about things that rarely
 * change. A snapshot is a list of words in memory and what they were: types of objects, pointers to instance dictionaries,
 * versions of dictionaries and types, lengths. While all are as they were, the registers loaded through them hold the same
 * objects and the checks on them hold; only the rest of the program is run. A word lies in an object that words before it
 * show to be alive, so they are compared in that order, and none after one that differs.
 *
 * A snapshot begins at roots: arguments that are certain objects. Which of several is looked at is decided by them; one at
 * the address of an object that has died is told by the words, which begin in it. */
typedef struct MdSnapshot MdSnapshot;

/* Makes a snapshot of the values of a run, after it has succeeded. `common`: roots that vary are loaded each time. NULL
 * without an exception where none can be made. */
MdSnapshot *md_snapshot_new(MdGuards *self, PyObject *const *values, const TensorTls *tls, bool common);
void md_snapshot_free(MdSnapshot *snapshot);
/* {what: how many, "common": bool}, for tests and reports. */
PyObject *md_snapshot_counts(const MdSnapshot *snapshot);

typedef enum {
    MD_SNAPSHOT_HOLDS, /* the program holds; the inputs have been handed over */
    MD_SNAPSHOT_FAILS, /* a guard does not hold (or an exception is set) */
    MD_SNAPSHOT_UNSURE, /* run the program */
    MD_SNAPSHOT_GONE, /* the same, and forget the snapshot */
} MdSnapshotVerdict;

/* Are the roots of a run those of the snapshot? They are loaded into its registers. */
bool md_snapshot_is_of(MdGuards *self, MdSnapshot *snapshot, PyObject *const *values, const TensorTls *tls);
/* Runs what is to be run, after that. `inputs` may be NULL. The snapshot may be gone afterwards: Python code may run. */
MdSnapshotVerdict md_snapshot_run(MdGuards *self, MdSnapshot *snapshot, PyObject *const *values, const TensorTls *tls,
                                  MdInputs *inputs);

/* ---- the snapshots of a program (snapshot_set.c) ---- */

/* What they say of these values; `*known`: one of these very roots has answered. Never GONE. */
MdSnapshotVerdict md_snapshots_run(MdGuards *self, PyObject *const *values, const TensorTls *tls, MdInputs *inputs,
                                   bool *known);
/* The program has held, and no snapshot of these very roots has said so: is it time for one? */
void md_snapshots_learn(MdGuards *self, PyObject *const *values, const TensorTls *tls);
/* A program begins. */
void md_snapshots_init(MdSnapshots *set);
/* Forgets all of them. */
void md_snapshots_clear(MdSnapshots *set);
/* The one that has answered last; NULL: there is none. */
const MdSnapshot *md_snapshots_latest(const MdSnapshots *set);

#endif
