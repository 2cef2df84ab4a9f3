/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for checkpoints that all ranks of a job name alike, a training whose state fills them, and its bits. */
#ifndef SAVED_H
#define SAVED_H

#ifndef _GNU_SOURCE
#error "nftw needs _GNU_SOURCE"
#endif
#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>

#include "trained.h"

enum { STEPS = 12, MOST_STATES = 64 };

/* ---- The folder ---- */

static char folder[200];

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
    return remove(path);
}

static inline void barrier(void)
{
    must(context_barrier(ctx, "a test"));
}

/* A new name; the folder itself is made by trama_save. */
static inline void folder_new(void)
{
    static int n;
    snprintf(folder, sizeof folder, "/tmp/trama-saved-%d-%d", (int)(n_ranks > 1 ? getppid() : getpid()), n++);
    if (my_rank == 0)
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    barrier();
}

static inline void folder_remove(void)
{
    barrier();
    if (my_rank == 0)
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    barrier();
}

static inline const char *in_folder(const char *name)
{
    static char path[2][500];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* The names in the folder, each with a space behind it, in order. */
static inline const char *names_in_folder(void)
{
    static char names[2000];
    struct dirent **found;
    int n = scandir(folder, &found, NULL, alphasort);
    *names = 0;
    for (int i = 0; i < n; i++) {
        if (found[i]->d_name[0] != '.')
            strcat(strcat(names, found[i]->d_name), " ");
        free(found[i]);
    }
    if (n >= 0)
        free(found);
    return names;
}

/* ---- A training whose state has random numbers and a name with a slash ---- */

static inline training training_new(const kind *k)
{
    training t = {.mesh = mesh_of(k->mesh), .p = trama_program_create()};
    const trama_init first = {.low = -0.7, .high = 0.7, .seed = 1}, second = {.low = -0.7, .high = 0.7, .seed = 2};
    t.x = trama_shard(trama_input(t.p, "x", k->dtype, TRAMA_SHAPE(TRAMA_ANY, IN)), t.mesh, k->data);
    t.y = trama_input(t.p, "y", k->dtype, TRAMA_SHAPE(TRAMA_ANY, OUT));
    trama_value *w =
        trama_shard(trama_parameter(t.p, "w", k->dtype, TRAMA_SHAPE(IN, HIDDEN), &first), t.mesh, k->weight);
    trama_value *h = trama_tanh(trama_matmul(t.x, w));
    h = trama_add(h, trama_mul(trama_uniform(t.p, k->dtype, TRAMA_SHAPE(HIDDEN), -0.01, 0.01, 5, 0),
                               trama_state(t.p, "block/scale", k->dtype, TRAMA_SHAPE(HIDDEN), &first)));
    trama_value *z = trama_matmul(h, trama_parameter(t.p, "v", k->dtype, TRAMA_SHAPE(HIDDEN, OUT), &second));
    t.loss = trama_mean(trama_square(trama_sub(z, t.y)));
    training_compile(&t, k);
    return t;
}

/* ---- Its bits ---- */

typedef struct bits {
    int n;
    _Alignas(16) char data[MOST_STATES][8 * IN * HIDDEN]; /* of numbers */
    char name[MOST_STATES][60];
    size_t bytes[MOST_STATES];
} bits;

static inline void bits_of(trama_executable *e, bits *b)
{
    b->n = trama_state_count(e);
    demand(b->n <= MOST_STATES, "too many states");
    for (int i = 0; i < b->n; i++) {
        const trama_value *s = trama_state_number(e, i);
        snprintf(b->name[i], sizeof b->name[i], "%s", trama_value_name(s));
        b->bytes[i] = (size_t)trama_shape_count(trama_value_shape(s)) * trama_dtype_size(trama_value_dtype(s));
        must(trama_read(e, s, b->data[i], b->bytes[i]));
    }
}

static inline void expect_bits(const bits *wanted, const bits *got, const char *when)
{
    demand(wanted->n == got->n, "%s: %d states instead of %d", when, got->n, wanted->n);
    for (int i = 0; i < got->n; i++)
        demand(!strcmp(wanted->name[i], got->name[i]) && !memcmp(wanted->data[i], got->data[i], got->bytes[i]),
               "%s: other bits of %s", when, got->name[i]);
}

#endif
