/* Exact event counters of the process; every line of this table is one key of stats(). */
#ifndef MD_STATS_H
#define MD_STATS_H

#include "frame_compat.h"

#define MD_COUNTERS(X) \
    X(frames, "frames that reached the evaluator with a context active") \
    X(frames_passed, "frames that reached it without: another thread's, or a guard's or compiler's own") \
    X(frames_unfit, "generators, class bodies, thrown-into and traced frames: run plain") \
    X(hits_in_place, "entries run by retargeting the frame") \
    X(hits_called, "entries run by a call because the frame had no room") \
    X(hits_direct, "entries run by an OptimizedFunction") \
    X(hits_tail, "entries of resume functions run without the evaluator") \
    X(tails_in_place, "of these, run in a frame made where the one before lay") \
    X(graphs_direct, "of all entries run, those whose graph was called without their code") \
    X(misses, "lookups without a hit") \
    X(guards, "check functions called") \
    X(guards_python, "of their guards, those that Python text decided") \
    X(guards_remembered, "of the guard programs, those of which only what may change at any time was run") \
    X(dicts_unchanged, "of these, those that looked at no dictionary, since none at all had changed") \
    X(snapshots, "times that was found out") \
    X(guard_errors, "check functions that raised") \
    X(converts, "calls of the compiler") \
    X(convert_errors, "of these, raised") \
    X(runs_skip, "frames of SKIP code") \
    X(runs_skip_subtree, "frames of SKIP_SUBTREE code") \
    X(runs_no_compile, "misses of NO_COMPILE code") \
    X(demotions, "SKIP code that became SKIP_SUBTREE by itself") \
    X(reruns, "plain re-runs after a failed graph call") \
    X(calls_plain, "calls of an OptimizedFunction that ran plain: tracing, generator, busy, stance") \
    X(calls_off, "calls of an OptimizedFunction without context") \
    X(entries_added, "cache entries made") \
    X(entries_dropped, "cache entries taken out") \
    X(functions_made, "function objects made to run entries") \
    X(installs, "times the evaluator was installed") \
    X(removals, "times it was removed")

typedef struct {
#define MD_COUNTER_FIELD(name, meaning) uint64_t name;
    MD_COUNTERS(MD_COUNTER_FIELD)
#undef MD_COUNTER_FIELD
} MdStats;

extern MdStats md_stats;

#define MD_COUNT(name) ((void)md_stats.name++)

/* stats() -> {name: count} */
PyObject *md_py_stats(PyObject *module, PyObject *unused);

#endif
