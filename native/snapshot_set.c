/* The snapshots of a program: one for each of a few combinations of roots that come in turn (instances of a class, say), and
 * a common one for all others. See guard_run.h. */
#include "snapshot.h"

#include "stats.h"

/* Runs without a snapshot after one that was of no use, at most; runs that one must answer to be of use. */
#define MD_LONGEST_WAIT 64
#define MD_WORTHWHILE 16
/* A snapshot that has answered none of so many runs makes room for another; for ever more, if that was of no use. */
#define MD_PATIENCE 64
#define MD_LONGEST_PATIENCE (1u << 20)
/* While there is nothing to be made, that is found out every so many runs. */
#define MD_LOOK_AGAIN 16

void md_snapshots_init(MdSnapshots *set)
{
    *set = (MdSnapshots){.wait = 1 /* the run that proves the program */, .patience = MD_PATIENCE};
}

static void discard(MdSnapshots *set, int i)
{
    MdSnapshot *snapshot = set->of[i];
    set->of[i] = NULL;
    if (snapshot != NULL) {
        md_snapshot_free(snapshot);
    }
}

void md_snapshots_clear(MdSnapshots *set)
{
    for (int i = 0; i <= MD_OWN_SNAPSHOTS; i++) {
        discard(set, i);
    }
}

const MdSnapshot *md_snapshots_latest(const MdSnapshots *set)
{
    const MdSnapshot *latest = NULL;
    for (int i = 0; i <= MD_OWN_SNAPSHOTS; i++) {
        if (set->of[i] != NULL && (latest == NULL || set->of[i]->last >= latest->last)) {
            latest = set->of[i];
        }
    }
    return latest;
}

/* A snapshot is no good any more. If they never are for long, fewer are made. */
static void forget(MdSnapshots *set, int i)
{
    set->penalty = set->of[i]->served >= MD_WORTHWHILE ? 0 : Py_MIN(set->penalty * 2 + 1, (uint32_t)MD_LONGEST_WAIT);
    set->wait = set->penalty;
    discard(set, i);
}

/* A snapshot answers. One that is worth its making vouches for its roots. */
static void serve(MdGuards *self, MdSnapshot *s)
{
    s->last = self->remembered.runs;
    if (s->served < MD_WORTHWHILE && ++s->served == MD_WORTHWHILE && !s->common) {
        for (Py_ssize_t i = 0; i < s->roots.count; i++) {
            if (s->roots.items[i].instruction >= 0) {
                self->code[s->roots.items[i].instruction].useless = 0;
            }
        }
    }
}

MdSnapshotVerdict md_snapshots_run(MdGuards *self, PyObject *const *values, const TensorTls *tls, MdInputs *inputs,
                                   bool *known)
{
    MdSnapshots *set = &self->remembered;
    set->runs++;
    for (int i = 0; i <= MD_OWN_SNAPSHOTS; i++) {
        MdSnapshot *s = set->of[i];
        if (s == NULL || !md_snapshot_is_of(self, s, values, tls)) {
            continue;
        }
        serve(self, s);
        bool own = !s->common;
        MdSnapshotVerdict verdict = md_snapshot_run(self, s, values, tls, inputs);
        if (verdict == MD_SNAPSHOT_GONE) {
            forget(set, i);
            return MD_SNAPSHOT_UNSURE;
        }
        *known = own || verdict != MD_SNAPSHOT_HOLDS;
        return verdict;
    }
    return MD_SNAPSHOT_UNSURE;
}

/* The snapshot that has been of no use for longest, if that is long; -1: none. */
static int idle(const MdSnapshots *set)
{
    int found = -1;
    for (int i = 0; i < MD_OWN_SNAPSHOTS; i++) {
        if (set->runs - set->of[i]->last > set->patience && (found < 0 || set->of[i]->last < set->of[found]->last)) {
            found = i;
        }
    }
    return found;
}

/* Is the object of a root the one that some snapshot has there? `run` is pure. */
static bool is_remembered(MdRun *run, const MdSnapshots *set, int32_t instruction)
{
    const MdInstr *ins = &run->self->code[instruction];
    bool loaded = md_guard_step(run, ins) == 1;
    for (int i = 0; loaded && i < MD_OWN_SNAPSHOTS; i++) {
        const MdSnapshot *s = set->of[i];
        for (Py_ssize_t j = 0; s != NULL && j < s->roots.count; j++) {
            if (s->roots.items[j].instruction == instruction && s->roots.items[j].want == run->registers[ins->out]) {
                return true;
            }
        }
    }
    return false;
}

/* A snapshot makes room. If it was of no use, that may be due to a root that is another object each time. */
static void replace(MdGuards *self, int i, PyObject *const *values, const TensorTls *tls)
{
    MdSnapshots *set = &self->remembered;
    MdSnapshot *s = set->of[i];
    if (s->served >= MD_WORTHWHILE) {
        set->patience = MD_PATIENCE;
    }
    else {
        set->patience = Py_MIN(set->patience * 2, MD_LONGEST_PATIENCE);
        MdRun run = {.self = self, .values = values, .registers = s->registers, .pure = true, .tls = *tls};
        for (Py_ssize_t j = 0; j < s->roots.count; j++) {
            int32_t number = s->roots.items[j].instruction;
            if (number >= 0 && self->code[number].useless < MD_USELESS && !is_remembered(&run, set, number)) {
                self->code[number].useless++;
            }
        }
    }
    discard(set, i);
}

/* Notes which roots differ between the snapshots that there are and the present run. */
static void compare_roots(MdGuards *self, PyObject *const *values, const TensorTls *tls)
{
    MdSnapshots *set = &self->remembered;
    for (int i = 0; i < MD_OWN_SNAPSHOTS; i++) {
        MdSnapshot *s = set->of[i];
        MdRun run = {.self = self, .values = values, .registers = s->registers, .pure = true, .tls = *tls};
        for (Py_ssize_t j = 0; j < s->roots.count; j++) {
            if (s->roots.items[j].instruction >= 0) {
                MdInstr *ins = &self->code[s->roots.items[j].instruction];
                ins->varies |= md_guard_step(&run, ins) != 1 || run.registers[ins->out] != s->roots.items[j].want;
            }
        }
    }
}

void md_snapshots_learn(MdGuards *self, PyObject *const *values, const TensorTls *tls)
{
    MdSnapshots *set = &self->remembered;
    if (set->wait > 0) {
        set->wait--;
        return;
    }
    int place = 0;
    while (place < MD_OWN_SNAPSHOTS && set->of[place] != NULL) {
        place++;
    }
    if (place == MD_OWN_SNAPSHOTS) {
        place = idle(set);
        if (place >= 0) {
            replace(self, place, values, tls);
        }
        else if (set->of[MD_OWN_SNAPSHOTS] == NULL) {
            place = MD_OWN_SNAPSHOTS;
            compare_roots(self, values, tls);
        }
        else {
            set->wait = MD_LOOK_AGAIN;
            if (set->of[MD_OWN_SNAPSHOTS]->last != set->runs) {
                forget(set, MD_OWN_SNAPSHOTS); /* roots that it takes for granted vary as well */
            }
            return;
        }
    }
    MdSnapshot *made = md_snapshot_new(self, values, tls, place == MD_OWN_SNAPSHOTS);
    if (made == NULL) {
        set->wait = MD_LONGEST_WAIT;
        return;
    }
    made->last = set->runs;
    set->of[place] = made;
    MD_COUNT(snapshots);
}
