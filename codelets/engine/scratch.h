/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host that a kernel takes for one call. Where the system has none, the kernel writes no result and
 * returns; kernel_run and kernel_add then report E_MEMORY. */
#ifndef CODELETS_SCRATCH_H
#define CODELETS_SCRATCH_H

#include <stddef.h>

/* Zero-initialised; scratch_free frees it. */
typedef struct scratch {
    void *at[3];
    size_t bytes[3];
    size_t refused; /* the bytes of the first request that was refused; 0: none was */
} scratch;

/* Buffer i of the call: taken once, kept until scratch_free, with any content. NULL where it is refused; then all later
 * requests are, too, so that a call of many products does none of them, or all. */
void *scratch_take(scratch *s, int i, size_t bytes);
void scratch_free(scratch *s);

/* The bytes that were refused to this thread since its last call of this function; 0: none. */
size_t scratch_refused(void);

#endif
