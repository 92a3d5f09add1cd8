/* The tensor leaf as the plain C core sees it: PyCapsule "minidynamo._tensor_guards._leaf" holds a TensorLeafApi.
   The core includes no torch header; a check needs the GIL and allocates nothing. */
#ifndef MINIDYNAMO_TENSOR_LEAF_H
#define MINIDYNAMO_TENSOR_LEAF_H

#include <Python.h>
#include <stdint.h>

#define TENSOR_LEAF_CAPSULE "minidynamo._tensor_guards._leaf"
#define TENSOR_LEAF_VERSION 5

#ifdef __cplusplus
extern "C" {
#endif

/* What torch keeps per thread and every tensor check needs: read once for all checks of a call. */
typedef struct {
    uint64_t included; /* dispatch keys */
    uint64_t excluded;
    int grad_mode;
} TensorTls;

/* A tensor that is known before it is looked at, and the check that it is to pass. */
typedef struct {
    PyObject *object; /* borrowed */
    const void *leaf; /* borrowed */
} TensorCheck;

typedef struct {
    int version; /* TENSOR_LEAF_VERSION */
    /* The seven literals of a TENSOR_MATCH row -> a prepared check; NULL with a Python exception set. */
    void *(*make)(PyObject *spec);
    /* 1 if obj has exactly that metadata, else 0. Never raises, runs no Python code. obj is borrowed. */
    int (*check)(const void *leaf, const TensorTls *tls, PyObject *obj);
    void (*free)(void *leaf);
    /* Many checks that hold now, to be made together; NULL with no memory. The objects are alive, the leaves outlive them. */
    void *(*known_make)(const TensorCheck *checks, Py_ssize_t count, const TensorTls *tls);
    /* Do all of them hold? The objects are alive. Never raises, runs no Python code. */
    int (*known_check)(void *known, const TensorTls *tls);
    void (*known_free)(void *known);
    /* 1 if torch's global state is (bits, default dtype name), else 0. Never raises. */
    int (*check_global_state)(const TensorTls *tls, uint64_t bits, PyObject *default_dtype);
    void (*read_tls)(TensorTls *tls);
    /* A hash of dtype, device and sizes; 0 for what is no plain tensor. Never raises, runs no Python code. */
    uint64_t (*signature)(PyObject *obj);
} TensorLeafApi;

#ifdef __cplusplus
}
#endif

#endif
