/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a checkpoint file: its frame (HDF5 without content), its seal, the folder that it is in. It knows
 * neither ranks nor layouts: callers say which bytes they write. */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "base.h"
#include "trama_checkpoint.h"

typedef struct stored_tensor {
    char *name;
    trama_dtype dtype;
    trama_shape shape;
    int64_t at, bytes; /* of its content in the file; at -1: it has none */
    uint64_t sum;      /* content_sum */
} stored_tensor;

typedef struct stored_text {
    char *key, *text;
} stored_text;

struct trama_checkpoint {
    char *path;
    int descriptor; /* -1: closed */
    int64_t bytes;  /* of the file when it is complete */
    ARRAY(stored_tensor) tensors;
    ARRAY(stored_text) texts;
    text missing, left_over;
};

trama_checkpoint *checkpoint_new(const char *path);
void checkpoint_add(trama_checkpoint *c, const char *name, trama_dtype dtype, trama_shape shape);
void checkpoint_set(trama_checkpoint *c, const char *key, const char *text);

/* "E_SYSTEM: FILE: dataset NAME: reason"; name NULL: of no dataset. Names the remedy. */
trama_status checkpoint_damaged(const char *path, const char *name, const char *reason);
trama_status checkpoint_failed(const char *path, const char *doing, int error); /* of a call that set errno */

/* The sum of the slabs first, first + step, ... of a tensor's content, as the file has it. */
trama_status checkpoint_sum_slabs(const trama_checkpoint *c, const stored_tensor *t, int first, int step,
                                  uint64_t *sum);

/* ---- hdf5_frame.c, hdf5_read.c ---- */

/* Makes the file at c->path with all texts, and datasets without content. E_UNSUPPORTED without HDF5. */
trama_status checkpoint_write_frame(const trama_checkpoint *c);
/* Fills in tensors and texts, and whether the places of contents lie within the file of c->bytes. */
trama_status checkpoint_read_frame(trama_checkpoint *c);
size_t seal_bytes(int n_tensors); /* the user block, which the frame leaves free for the seal */

/* ---- seal.c ---- */

/* Writes sums and size, once all content is there. */
trama_status checkpoint_seal(const trama_checkpoint *c);
/* Opens c->path, compares size and sums of all bytes that are not content, and reads the sums of contents, which
 * checkpoint_read_frame then gives to the tensors. */
trama_status checkpoint_open_sealed(trama_checkpoint *c);
/* Opens the path without a seal, for writing. */
trama_status checkpoint_open_frame(trama_checkpoint *c);

/* ---- folder.c ---- */

/* The checkpoint files of a folder, newest step first; damaged ones are left out, and told to `tell`, which may be
 * NULL. */
typedef struct found_checkpoint {
    int64_t step;
    char *path;
} found_checkpoint;
typedef ARRAY(found_checkpoint) found_checkpoints;
typedef void folder_tell(void *data, const char *message);
trama_status folder_list(const char *folder, folder_tell *tell, void *data, found_checkpoints *found);
void folder_list_free(found_checkpoints *found);

/* Makes the folder if its parent is there, and removes unfinished checkpoints, which no save is writing. */
trama_status folder_begin(const char *folder);
char *folder_path(const char *folder, int64_t step, bool unfinished);
/* Gives the file its final name for good, and removes the oldest checkpoints beyond `keep`; 0: all stay. */
trama_status folder_finish(const char *folder, const char *unfinished, const char *path, int keep);
bool path_is_folder(const char *path);

/* ---- choice.c ---- */

/* Whether the name fits one of the patterns between commas; * stands for any characters, ? for one; NULL: all fit. */
bool name_is_chosen(const char *patterns, const char *name);
/* The name in the file of a state: map is "w=weight,b=bias"; a name that is not in it stays. The caller frees. */
char *name_in_file(const char *map, const char *name);

#endif
