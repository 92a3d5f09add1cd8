/* Has any dict been changed at all (CPython 3.11)? */
#ifndef MD_DICT_EPOCH_H
#define MD_DICT_EPOCH_H

#include "frame_compat.h"

/* A number that differs from an earlier answer if since then any dict has been made or changed; 0: it is not known. Between
 * equal answers versions and lengths of all dicts are as they were. Runs no Python code; leaves no exception. */
uint64_t md_dict_epoch(void);

#endif
