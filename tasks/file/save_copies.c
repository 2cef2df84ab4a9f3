/* SPDX-License-Identifier: Apache-2.0 */
/* The copies of an asynchronous save: a task for each slab reads the state. StarPU runs it after the tasks that were
 * submitted before, and lets only later tasks that overwrite the slab's tiles wait for it. */
#define _DEFAULT_SOURCE /* madvise */
#include <stdlib.h>
#include <sys/mman.h>

#include "host.h"
#include "saving.h"

void *slab_alloc(size_t bytes)
{
    enum { LARGE_PAGE = 2 << 20 }; /* a fault for each small page takes longer than its copy */
    void *data = NULL;
    if (bytes < 2 * LARGE_PAGE)
        return trama_try_alloc(bytes);
    if (posix_memalign(&data, LARGE_PAGE, bytes))
        return NULL;
    madvise(data, bytes, MADV_HUGEPAGE);
    return data;
}

/* ---- Events ---- */

static void note_copied(void *arg)
{
    held_slab *h = arg;
    saving *s = h->s;
    atomic_store(&h->copied, true);
    sem_post(&s->one_copied);
    fence_signal(s->copies);
}

void saving_wait_copied(held_slab *h)
{
    while (!atomic_load(&h->copied))
        sem_wait(&h->s->one_copied);
}

trama_status saving_wait_all_copied(saving *s)
{
    return fence_wait(s->e->context, s->copies, "trama_save");
}

/* ---- Tasks ---- */

static void make_work(held_slab *h, const instance *in, const plan_region *region, const shard *bound)
{
    h->views[1] = instance_view(in, region, bound);
    h->views[0] = host_dense(h->views[1], h->slab.data);
    h->work = (work){.kind = &work_copy, .n_views = 2, .views = h->views};
}

/* The tiles that the region meets. */
static void set_handles(struct starpu_task *t, const shard *bound, int first, int n)
{
    task_room(t, n);
    for (int i = 0; i < n; i++) {
        STARPU_TASK_SET_HANDLE(t, bound->tile[first + i], i);
        STARPU_TASK_SET_MODE(t, STARPU_R, i);
    }
}

/* A CPU worker copies, of the state's place where this has some. A lower priority than that of a step's tasks fills the
 * times in which workers would wait. */
static struct starpu_task *make_task(held_slab *h, const instance *in, const plan_region *region, shard *bound)
{
    const trama_context *c = in->context;
    struct starpu_task *t = starpu_task_create();
    int first, last;
    plan_tiles(&in->of->plan->shards.at[region->shard], &region->box, &first, &last);
    t->cl = &work_codelet;
    set_handles(t, bound, first, last - first + 1);
    bound->readers++;
    t->cl_arg = &h->work;
    t->cl_arg_size = 0;
    t->name = "save";
    t->priority = 0;
    t->callback_func = note_copied;
    t->callback_arg = h;
    t->workerids = (uint32_t *)(context_machine(c)->places[bound->place].gpu ? context_cpu_mask(c)
                                                                             : context_place_mask(c, bound->place));
    t->workerids_len = context_mask_words(c);
    return t;
}

trama_status saving_hold(saving *s, instance *in, const plan_region *region, saved_slab slab)
{
    trama_context *c = in->context;
    shard *bound = instance_shard(in, region->shard);
    held_slab *h = *ARRAY_PUSH(&s->slabs) = trama_alloc(sizeof *h);
    *h = (held_slab){.s = s, .slab = slab};
    make_work(h, in, region, bound);
    struct starpu_task *t = make_task(h, in, region, bound);
    context_wake(c);
    context_count_tasks(c, 1);
    fence_add(s->copies, 1);
    int error = starpu_task_submit(t);
    if (error) {
        fence_signal(s->copies);
        starpu_task_destroy(t);
    }
    context_rest(c);
    return error ? trama_fail(NOWHERE, TRAMA_E_SYSTEM, "StarPU refused to copy %s: error %d",
                              s->file->tensors.at[slab.tensor].name, error)
                 : TRAMA_OK;
}
