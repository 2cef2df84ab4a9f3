/* SPDX-License-Identifier: Apache-2.0 */
/* Counts tasks that Trama hands to StarPU: the function that submits a task stands before StarPU's own, counts and
 * calls it. StarPU's tasks for itself do not count. Included first, after _GNU_SOURCE. */
#ifndef SUBMITTED_H
#define SUBMITTED_H

#include <dlfcn.h>
#include <inttypes.h>
#include <stdatomic.h>

#include "fence.h"
#include <starpu.h>

static _Atomic int64_t submitted;

#undef starpu_task_submit /* where StarPU traces, a macro around the function */
int starpu_task_submit(struct starpu_task *task)
{
    int (*theirs)(struct starpu_task *) = (int (*)(struct starpu_task *))dlsym(RTLD_NEXT, "starpu_task_submit");
    submitted += task->callback_func == fence_signal;
    return theirs(task);
}

#endif
