/* Making a snapshot: the instructions of a program are run once more, and what each has seen becomes words to compare, or
 * the instruction is run each time. See guard_run.h. */
#include "snapshot_maker.h"

bool md_vector_grow(void *vector, size_t size)
{
    VECTOR(char) *v = vector;
    if (v->count < v->room) {
        return true;
    }
    Py_ssize_t room = v->room != 0 ? v->room * 2 : 16;
    char *items = PyMem_Realloc(v->items, (size_t)room * size);
    if (items == NULL) {
        return false;
    }
    v->items = items;
    v->room = room;
    return true;
}

static Py_ssize_t add_word(MdMaker *m, const void *at, bool of_dict)
{
    size_t slot = ((uintptr_t)at >> 3) * (size_t)0x9E3779B97F4A7C15u >> 20 & m->mask;
    while (m->seen[slot] != NULL) {
        if (m->seen[slot] == at) {
            return m->where[slot];
        }
        slot = (slot + 1) & m->mask;
    }
    MdSnapshot *s = m->snapshot;
    MdWord word = {at, *(const MdBits *)at};
    /* the table has room for all: see most_words */
    if (!APPEND(s->words, word) || (!of_dict && !APPEND(s->fixed, word))) {
        m->failed = true;
        return -1;
    }
    m->seen[slot] = at;
    return m->where[slot] = s->words.count - 1;
}

Py_ssize_t md_maker_word(MdMaker *m, const void *at)
{
    return add_word(m, at, false);
}

Py_ssize_t md_maker_dict_word(MdMaker *m, const void *at)
{
    return add_word(m, at, true);
}

/* Does the instruction read a register that is loaded at the end? */
static bool reads_late(const MdMaker *m, const MdInstr *ins)
{
    if (ins->op == MD_OP_CHECK_DISTINCT) {
        for (Py_ssize_t i = 0; i < ins->index; i++) {
            if (m->states[ins->registers[i]] == MD_LATE) {
                return true;
            }
        }
        return false;
    }
    bool pair = ins->op == MD_OP_CHECK_IS || ins->op == MD_OP_CHECK_IS_NOT;
    return (ins->in >= 0 && m->states[ins->in] == MD_LATE) || (pair && m->states[ins->index] == MD_LATE);
}

static void borrow(MdMaker *m, Py_ssize_t reg)
{
    if (m->states[reg] != MD_LATE && !APPEND(m->snapshot->borrowed, (int32_t)reg)) {
        m->failed = true;
    }
}

/* The instruction is run at the end, with the registers that it reads. */
static void postpone(MdMaker *m, const MdInstr *ins, int32_t number)
{
    m->failed |= !APPEND(m->snapshot->late, number);
    m->snapshot->late_registers |= ins->op != MD_OP_CHECK_PY;
    if (ins->in >= 0) {
        borrow(m, ins->in);
    }
    if (ins->op == MD_OP_CHECK_IS || ins->op == MD_OP_CHECK_IS_NOT) {
        borrow(m, ins->index);
    }
    for (Py_ssize_t i = 0; ins->op == MD_OP_CHECK_DISTINCT && i < ins->index; i++) {
        borrow(m, ins->registers[i]);
    }
    if (ins->out >= 0) {
        m->states[ins->out] = MD_LATE;
    }
}

static void record(MdMaker *m, const MdInstr *ins, int32_t number)
{
    int outcome = ins->op == MD_OP_CHECK_PY || reads_late(m, ins) ? MD_UNSURE : md_guard_step(&m->run, ins);
    if (outcome == MD_UNSURE) {
        postpone(m, ins, number);
        return;
    }
    if (outcome <= 0) {
        PyErr_Clear();
        m->failed = true; /* it has changed since the run */
        return;
    }
    if (ins->out >= 0) {
        m->states[ins->out] = md_known_of_load(m, ins, number);
        if (m->states[ins->out] == MD_ANY) {
            m->failed |= !APPEND(m->snapshot->rest, number);
        }
    }
    else if (ins->op == MD_OP_CHECK_TENSOR && md_maker_knows(m, ins->in)) {
        TensorCheck check = {md_maker_value(m, ins->in), ins->leaf};
        m->failed |= !APPEND(m->tensors, check);
    }
    else if (!md_known_check(m, ins)) {
        m->failed |= !APPEND(m->snapshot->rest, number);
    }
}

/* No program adds more words: six of each instruction, and of each name of those that have several. */
static size_t most_words(const MdGuards *self)
{
    size_t words = 0;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        const MdInstr *ins = &self->code[i];
        bool several = ins->op == MD_OP_CHECK_LACKS || ins->op == MD_OP_CHECK_EMPTY;
        words += 6 + (several ? (size_t)ins->index * 6 : 0);
    }
    return words;
}

static bool know_tensors(MdMaker *m)
{
    MdSnapshot *s = m->snapshot;
    const TensorLeafApi *leaves = m->self->leaves;
    s->tensors = m->tensors.count;
    if (s->tensors > 0) {
        s->known = leaves->known_make(m->tensors.items, s->tensors, &m->run.tls);
        s->known_free = leaves->known_free;
    }
    return s->tensors == 0 || s->known != NULL;
}

MdSnapshot *md_snapshot_new(MdGuards *self, PyObject *const *values, const TensorTls *tls, bool common)
{
    size_t room = 64;
    while (room < most_words(self) * 2) {
        room *= 2;
    }
    MdSnapshot *snapshot = PyMem_Calloc(1, sizeof(MdSnapshot));
    MdMaker m = {
        .self = self,
        .snapshot = snapshot,
        .states = PyMem_Calloc((size_t)self->registers + 1, sizeof(MdKnown)),
        .seen = PyMem_Calloc(room, sizeof(void *)),
        .where = PyMem_Calloc(room, sizeof(Py_ssize_t)),
        .mask = room - 1,
    };
    if (snapshot != NULL) {
        snapshot->common = common;
        snapshot->registers = PyMem_Calloc((size_t)self->registers + 1, sizeof(PyObject *));
    }
    bool made =
        snapshot != NULL && snapshot->registers != NULL && m.states != NULL && m.seen != NULL && m.where != NULL;
    if (made) {
        m.run = (MdRun){.self = self, .values = values, .registers = snapshot->registers, .pure = true, .tls = *tls};
        for (Py_ssize_t i = 0; i < self->count && !m.failed; i++) {
            record(&m, &self->code[i], (int32_t)i);
        }
        for (Py_ssize_t i = 0; i < self->input_count && !m.failed; i++) {
            m.failed = m.states[self->inputs[i]] == MD_LATE; /* handed over before anything is run late */
        }
        made = !m.failed && know_tensors(&m);
    }
    PyMem_Free(m.states);
    PyMem_Free(m.seen);
    PyMem_Free(m.where);
    PyMem_Free(m.tensors.items);
    if (!made && snapshot != NULL) {
        md_snapshot_free(snapshot);
        snapshot = NULL;
    }
    return snapshot;
}
