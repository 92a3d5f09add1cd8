/* Running a snapshot: what a guard program need not look at again. See guard_run.h. */
#include "snapshot.h"

#include "stats.h"

void md_snapshot_free(MdSnapshot *s)
{
    for (Py_ssize_t i = 0; i < s->watches.count; i++) {
        md_dict_unwatch(s->watches.items[i]);
    }
    PyMem_Free(s->watches.items);
    Py_ssize_t count = s->held.count;
    PyObject **held = s->held.items;
    PyMem_Free(s->roots.items);
    PyMem_Free(s->words.items);
    PyMem_Free(s->fixed.items);
    if (s->known != NULL) {
        s->known_free(s->known);
    }
    PyMem_Free(s->keys.items);
    PyMem_Free(s->rest.items);
    PyMem_Free(s->late.items);
    PyMem_Free(s->borrowed.items);
    PyMem_Free(s->registers);
    PyMem_Free(s);
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_DECREF(held[i]);
    }
    PyMem_Free(held);
}

PyObject *md_snapshot_counts(const MdSnapshot *s)
{
    return Py_BuildValue("{sn sn sn sn sn sn sn sn sO}", "roots", s->roots.count, "words", s->words.count, "fixed",
                         s->fixed.count, "keys", s->keys.count, "watches", s->watches.count, "tensors", s->tensors,
                         "rest", s->rest.count, "late", s->late.count, "common", s->common ? Py_True : Py_False);
}

/* The version of a dict is another one: are the keys that matter as they were? Then its new version is as good. */
static bool keys_as_before(MdSnapshot *s, Py_ssize_t number)
{
    bool any = false;
    for (Py_ssize_t i = 0; i < s->keys.count; i++) {
        const MdKeyOf *key = &s->keys.items[i];
        if (key->word != number) {
            continue;
        }
        any = true;
        if (key->key == NULL || !md_dict_has_str_keys(key->dict)
            || _PyDict_GetItem_KnownHash(key->dict, key->key, ((PyASCIIObject *)key->key)->hash) != key->want) {
            return false;
        }
    }
    if (any) {
        s->words.items[number].want = *s->words.items[number].at;
    }
    return any;
}

/* Notes a dict whose version changes, so that the next snapshot goes by its keys. */
static void loosen(MdGuards *self, const MdWord *word)
{
    PyObject *dict = md_dict_of_version(word->at);
    if (md_is_loose(self, dict)) {
        return;
    }
    for (int i = 0; i < MD_LOOSE; i++) {
        if (self->loose[i] == NULL) {
            /* the word may be no version of a dict: then nothing is ever found at that address */
            self->loose[i] = dict;
            return;
        }
    }
}

/* Something is not as it was: may it be? */
static __attribute__((noinline)) bool may_differ(MdGuards *self, MdSnapshot *s, Py_ssize_t number)
{
    if (keys_as_before(s, number)) {
        return true;
    }
    const MdWord *word = &s->words.items[number];
    for (Py_ssize_t i = 0; i < s->fixed.count; i++) {
        if (s->fixed.items[i].at == word->at) {
            return false;
        }
    }
    loosen(self, word);
    return false;
}

/* After an operator a check reads memory that is in no cache: that of so many words ahead is fetched. */
#define MD_AHEAD 40

/* The first word of some that differs, or `end`. Nothing behind it is read. */
static inline const MdWord *first_other(const MdWord *word, const MdWord *end)
{
    for (; end - word >= 4 + MD_AHEAD; word += 4) {
        __builtin_prefetch(word[MD_AHEAD].at);
        __builtin_prefetch(word[MD_AHEAD + 1].at);
        __builtin_prefetch(word[MD_AHEAD + 2].at);
        __builtin_prefetch(word[MD_AHEAD + 3].at);
        if (MD_UNLIKELY(*word[0].at != word[0].want)) {
            return word;
        }
        if (MD_UNLIKELY(*word[1].at != word[1].want)) {
            return word + 1;
        }
        if (MD_UNLIKELY(*word[2].at != word[2].want)) {
            return word + 2;
        }
        if (MD_UNLIKELY(*word[3].at != word[3].want)) {
            return word + 3;
        }
    }
    while (word < end && *word->at == word->want) {
        word++;
    }
    return word;
}

/* So many words of dictionaries are worth the question whether any dict has changed. */
#define MD_MANY_DICTS 16

static bool words_as_before(MdGuards *self, MdSnapshot *s)
{
    uint64_t epoch = s->words.count - s->fixed.count >= MD_MANY_DICTS ? md_dict_epoch() : 0;
    if (epoch != 0 && epoch == s->epoch) {
        MD_COUNT(dicts_unchanged);
        const MdWord *end = s->fixed.items + s->fixed.count;
        return first_other(s->fixed.items, end) == end;
    }
    const MdWord *word = s->words.items, *end = word + s->words.count;
    while ((word = first_other(word, end)) != end) {
        if (!may_differ(self, s, word - s->words.items)) {
            return false;
        }
        word++;
    }
    s->epoch = epoch;
    return true;
}

bool md_snapshot_is_of(MdGuards *self, MdSnapshot *s, PyObject *const *values, const TensorTls *tls)
{
    MdRun run = {.self = self, .values = values, .registers = s->registers, .pure = true, .tls = *tls};
    for (Py_ssize_t i = 0; i < s->roots.count; i++) {
        const MdRoot *root = &s->roots.items[i];
        if (root->instruction < 0) {
            if (values[self->arguments] != root->want) {
                return false;
            }
            continue;
        }
        const MdInstr *ins = &self->code[root->instruction];
        if (md_guard_step(&run, ins) != 1 || run.registers[ins->out] != root->want) {
            return false;
        }
    }
    return true;
}

/* What may run Python code: on registers of its own. The snapshot is not looked at any more once it has begun. */
static MdSnapshotVerdict run_late(MdRun *run, MdSnapshot *s)
{
    const MdGuards *self = run->self;
    Py_ssize_t count = s->late.count;
    size_t room = s->late_registers ? (size_t)self->registers : 0;
    PyObject **registers = PyMem_Calloc(room + 1, sizeof(PyObject *));
    int32_t *late = PyMem_New(int32_t, count);
    int outcome = registers != NULL && late != NULL ? 1 : -1;
    if (outcome < 0) {
        PyErr_NoMemory();
    }
    else {
        memcpy(late, s->late.items, (size_t)count * sizeof(int32_t));
        for (Py_ssize_t i = 0; i < s->borrowed.count; i++) {
            int32_t reg = s->borrowed.items[i];
            Py_XSETREF(registers[reg], Py_NewRef(run->registers[reg]));
        }
        MdRun owned = *run;
        owned.registers = registers;
        owned.pure = false;
        for (Py_ssize_t i = 0; i < count && outcome > 0; i++) {
            outcome = md_guard_step(&owned, &self->code[late[i]]);
        }
    }
    for (size_t i = 0; registers != NULL && i < room; i++) {
        Py_XDECREF(registers[i]);
    }
    PyMem_Free(registers);
    PyMem_Free(late);
    return outcome > 0 ? MD_SNAPSHOT_HOLDS : MD_SNAPSHOT_FAILS;
}

/* What is run in each call is mostly the tensors among the arguments. */
static inline int rest_step(MdRun *run, const MdInstr *ins)
{
    if (ins->op == MD_OP_LOAD_LOCAL) {
        PyObject *value = run->values[ins->index];
        run->registers[ins->out] = value;
        return value != NULL;
    }
    if (ins->op == MD_OP_CHECK_TENSOR) {
        return run->self->leaves->check(ins->leaf, &run->tls, run->registers[ins->in]);
    }
    return md_guard_step(run, ins);
}

MdSnapshotVerdict md_snapshot_run(MdGuards *self, MdSnapshot *s, PyObject *const *values, const TensorTls *tls,
                                  MdInputs *inputs)
{
    MdRun run = {.self = self, .values = values, .registers = s->registers, .pure = true, .tls = *tls};
    if (s->stale || !words_as_before(self, s)) {
        return MD_SNAPSHOT_GONE;
    }
    if (s->known != NULL && !self->leaves->known_check(s->known, tls)) {
        return MD_SNAPSHOT_FAILS;
    }
    for (const int32_t *number = s->rest.items, *end = number + s->rest.count; number < end; number++) {
        int outcome = rest_step(&run, &self->code[*number]);
        if (MD_UNLIKELY(outcome != 1)) {
            return outcome == 0 ? MD_SNAPSHOT_FAILS : MD_SNAPSHOT_UNSURE;
        }
    }
    MD_COUNT(guards_remembered);
    if (inputs != NULL && md_guards_hand_over(&run, inputs) < 0) {
        return MD_SNAPSHOT_FAILS;
    }
    return s->late.count == 0 ? MD_SNAPSHOT_HOLDS : run_late(&run, s);
}
