/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of a checkpoint: converts slabs, sums them and writes them, at once, or in a thread of its own once each
 * is copied. The thread calls neither StarPU, MPI nor HDF5. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "box_file.h"
#include "content_sum.h"
#include "saving.h"
#include "shares.h"

trama_status saving_write(saving *s, const saved_slab *slab)
{
    const stored_tensor *t = &s->file->tensors.at[slab->tensor];
    const size_t element = trama_dtype_size(t->dtype);
    const int64_t n = box_count(&slab->box);
    void *converted = NULL;
    if (t->dtype != slab->dtype) {
        converted = trama_try_alloc((size_t)n * element);
        if (!converted)
            return trama_fail(NOWHERE, TRAMA_E_MEMORY, "%s: no memory to convert %s", s->path, t->name);
        elements_convert(slab->dtype, slab->data, t->dtype, converted, n);
    }
    const void *data = converted ? converted : slab->data;
    s->sums[slab->tensor] += content_sum_box(t->shape, element, &slab->box, data);
    bool good = box_write(checkpoint_descriptor(s->file, t), t->at, t->shape, element, &slab->box, data);
    int error = errno;
    free(converted);
    return good ? TRAMA_OK : checkpoint_failed(s->path, t->name, error);
}

/* ---- The end of the file ---- */

static trama_status complete(saving *s)
{
    trama_status status = shares_end(s->file, s->ranks);
    if (!status)
        status = s->file->format->seal(s->file);
    if (!status)
        status = checkpoint_name_shards(s->file);
    if (!status)
        status = folder_finish(s->folder, s->file->path, s->path, s->keep);
    return status;
}

trama_status saving_finish(saving *s, trama_status mine)
{
    if (!mine && !checkpoint_synchronise(s->file))
        mine = checkpoint_failed(s->path, "cannot be synchronised", errno);
    bool noted = share_write(s->file, s->rank, mine != TRAMA_OK, s->sums);
    if (!noted && !mine)
        mine = checkpoint_failed(s->path, "cannot be written", errno);
    if (!noted)
        checkpoint_remove(s->file); /* rank 0 waits for the share, and sees this */
    if (s->rank == 0 && (!mine || s->ranks > 1)) {
        trama_status status = complete(s);
        mine = mine ? mine : status;
    }
    if (mine && s->rank == 0)
        checkpoint_remove(s->file);
    return mine;
}

/* ---- The thread ---- */

/* A kernel that failed has left no state to save; where it ran before the copies, they are done after its note. */
static void *write_slabs(void *data)
{
    saving *s = data;
    trama_status status = TRAMA_OK;
    for (int i = 0; i < s->slabs.n; i++) {
        held_slab *h = s->slabs.at[i];
        saving_wait_copied(h);
        if (!status)
            status = saving_write(s, &h->slab);
        free(h->slab.data);
        h->slab.data = NULL;
    }
    if (!status)
        status = faults_status(&s->e->kernels.faults);
    s->status = saving_finish(s, status);
    if (s->status)
        s->message = trama_text_copy(trama_error());
    return NULL;
}

/* Where workers keep all cores busy, the thread takes a small part of one; where they sleep, as much as it needs. */
static void *write_in_thread(void *data)
{
    enum { NICER = 19 };
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER); /* 0: of the thread */
    return write_slabs(data);
}

void saving_start_thread(saving *s)
{
    s->running = !pthread_create(&s->thread, NULL, write_in_thread, s);
    if (s->running)
        return;
    saving_wait_all_copied(s);
    write_slabs(s);
}

trama_status saving_join(saving *s)
{
    saving_wait_all_copied(s);
    if (s->running)
        pthread_join(s->thread, NULL);
    s->running = false;
    return s->status ? trama_fail(NOWHERE, s->status, "%s", s->message) : TRAMA_OK;
}

void saving_free(saving **saving_)
{
    saving *s = *saving_;
    if (!s)
        return;
    saving_wait_all_copied(s);
    for (int i = 0; i < s->slabs.n; i++) {
        free(s->slabs.at[i]->slab.data);
        free(s->slabs.at[i]);
    }
    ARRAY_FREE(&s->slabs);
    fence_free(s->copies);
    sem_destroy(&s->one_copied);
    ARRAY_FREE(&s->tensor_of);
    trama_checkpoint_destroy(&s->file);
    free(s->sums);
    free(s->folder);
    free(s->path);
    free(s->message);
    free(s);
    *saving_ = NULL;
}
