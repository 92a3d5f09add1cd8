/* Watchers of dictionaries (CPython 3.12 and newer): a byte is set before a key, or any key, of a dict changes. */
#ifndef MD_DICT_WATCH_H
#define MD_DICT_WATCH_H

#include "frame_compat.h"

typedef struct MdWatch MdWatch;

/* `*stale` becomes 1 when `key` (an exact str that outlives the watch; NULL: any) of `dict` changes, or when the dict dies.
 * NULL, without an exception, where that cannot be had: 3.11, no watcher left, no memory. */
MdWatch *md_dict_watch(PyObject *dict, PyObject *key, char *stale);
void md_dict_unwatch(MdWatch *watch);

#endif
