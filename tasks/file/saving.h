/* SPDX-License-Identifier: Apache-2.0 */
/* A save in progress on this rank: the states, their boxes that this rank writes, the writer. */
#ifndef SAVING_H
#define SAVING_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "checkpoint.h"
#include "executable.h"
#include "trama_save.h"
#include "work.h"

enum { SLAB_BYTES = 4 << 20 /* of the buffer between memory and file */ };

/* A part of a state that this rank writes, copied. */
typedef struct saved_slab {
    int tensor;        /* of the file */
    trama_dtype dtype; /* of the data */
    box box;
    void *data; /* [box.n] row-major */
} saved_slab;

struct saving;

/* A slab whose copy is a task; it does not move. */
typedef struct held_slab {
    struct saving *s;
    saved_slab slab;
    trama_view views[2]; /* of the slab, of the state */
    work work;
    atomic_bool copied;
} held_slab;

typedef struct saving {
    trama_executable *e;
    char *folder, *path;    /* path: the final name */
    trama_checkpoint *file; /* under its unfinished name */
    int rank, ranks, keep;
    ARRAY(int) tensor_of; /* [state number] in the file, or -1 */
    uint64_t *sums;       /* [tensors] this rank's part */
    bool holds;           /* slabs are held for the thread; else each is written at once */
    ARRAY(held_slab *) slabs;
    fence *copies;    /* the tasks that copy held slabs */
    sem_t one_copied; /* is posted for each */
    pthread_t thread;
    bool running;
    trama_status status; /* of the thread, with its message */
    char *message;
} saving;

/* save_boxes.c: writes each slab of this rank, or has it copied. Collective. */
trama_status saving_boxes(saving *s);

/* save_copies.c: submits the task that copies a region into the slab, whose data it takes over. Tasks that overwrite
 * the region run after it. */
void *slab_alloc(size_t bytes); /* free() frees it; NULL where memory is short */
trama_status saving_hold(saving *s, instance *in, const plan_region *region, saved_slab slab);
void saving_wait_copied(held_slab *h);          /* in the thread */
trama_status saving_wait_all_copied(saving *s); /* in the thread of the user's calls, under the watchdog */

/* save_writer.c */
trama_status saving_write(saving *s, const saved_slab *slab);
/* Ends the file: this rank's share; on rank 0, once all shares are there, the seal and the final name. */
trama_status saving_finish(saving *s, trama_status mine);
/* Writes the held slabs and ends the file, in a thread if the system has one. */
void saving_start_thread(saving *s);
/* Waits for the thread. */
trama_status saving_join(saving *s);
void saving_free(saving **s);

/* The error of a step of a call, as the error of the user's call. */
trama_status saving_error(trama_where where, const char *call, trama_status status);

/* local_boxes.c: whether a local box before box i is equal to it. */
bool box_is_repeated(const plan_dist_value *h, int i);

/* Fills the boxes that this rank has of a value; one that several places have is read once. */
typedef struct boxes_filled {
    value_ref at;
    size_t element; /* bytes of an element in the file */
    /* Reads a part of the tensor into data, row-major as elements of the type. */
    trama_status (*read)(const void *with, trama_dtype dtype, const box *b, void *data);
    const void *with;
    void *room;       /* [SLAB_BYTES, or an element] */
    const char *call; /* the user's */
} boxes_filled;
trama_status boxes_fill(const boxes_filled *f);

/* load_states.c: loads one file. *damaged: its content is, so that an older one may serve. Collective. */
trama_status state_load_file(trama_executable *e, const char *path, const trama_load_options *o,
                             trama_checkpoint **loaded, bool *damaged);

/* state_rows.c: a state in the layout of rows of the file, on one process a rank. Collective. */
typedef struct state_rows {
    compiled_program *s;
    instance *in;
    const plan_dist_value *at;
} state_rows;
trama_status state_rows_make(trama_executable *e, const trama_value *v, value_ref at, state_rows *rows);
void state_rows_free(state_rows *rows);

#endif
