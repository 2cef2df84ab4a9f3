/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a checkpoint: its files, its frame (all but content), its seal, the folder that it is in. It knows
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
    int shard;         /* 1 + the number of the shard with the content; 0: the content is in the checkpoint's file */
} stored_tensor;

/* A file with contents beside the checkpoint's own file. */
typedef struct stored_shard {
    char *path;
    int descriptor; /* -1: closed */
    int64_t bytes;
} stored_shard;

typedef struct stored_text {
    char *key, *text;
} stored_text;

typedef struct checkpoint_format checkpoint_format;

struct trama_checkpoint {
    const checkpoint_format *format;
    char *path;
    int descriptor; /* -1: closed */
    int64_t bytes;  /* of the file when it is complete */
    ARRAY(stored_shard) shards;
    ARRAY(stored_tensor) tensors;
    ARRAY(stored_text) texts;
    text missing, left_over;
};

/* The format of a file. The name of the file tells it. */
struct checkpoint_format {
    bool summed; /* the file has check sums of contents */
    /* Makes the files with all texts and without content; NULL: the format is only read. */
    trama_status (*write_frame)(const trama_checkpoint *c);
    /* Opens the files, and fills in tensors and texts. Each place of a content lies within its file. */
    trama_status (*open)(trama_checkpoint *c);
    trama_status (*open_unfinished)(trama_checkpoint *c); /* for writing contents */
    /* Ends the files, once all contents are there. */
    trama_status (*seal)(const trama_checkpoint *c);
};
extern const checkpoint_format hdf5_format, safetensors_format, npy_format, npz_format;

trama_checkpoint *checkpoint_new(const char *path);
void checkpoint_add(trama_checkpoint *c, const char *name, trama_dtype dtype, trama_shape shape);
/* Adds a state under its name in the file (name_in_file), its floats as `stored`; TRAMA_N_DTYPES: as they are. False
 * where another has that name. */
bool checkpoint_add_state(trama_checkpoint *c, const char *names, trama_dtype stored, const char *name,
                          trama_dtype dtype, trama_shape shape);
void checkpoint_set(trama_checkpoint *c, const char *key, const char *text);

/* Opens a regular file. */
trama_status checkpoint_open_file(const char *path, int how, int *descriptor, int64_t *bytes);
int checkpoint_descriptor(const trama_checkpoint *c, const stored_tensor *t); /* of the file with the content */
bool checkpoint_synchronise(const trama_checkpoint *c);                       /* fsync of all files; false with errno */
void checkpoint_remove(const trama_checkpoint *c);                            /* removes all files */

/* "E_SYSTEM: FILE: dataset NAME: reason"; name NULL: of no dataset. Names the remedy. */
trama_status checkpoint_damaged(const char *path, const char *name, const char *reason);
trama_status checkpoint_failed(const char *path, const char *doing, int error); /* of a call that set errno */

/* The sum of the slabs first, first + step, ... of a tensor's content, as the file has it. */
trama_status checkpoint_sum_slabs(const trama_checkpoint *c, const stored_tensor *t, int first, int step,
                                  uint64_t *sum);

/* ---- hdf5_frame.c, hdf5_read.c, seal.c: checkpoints of HDF5 ---- */

/* Makes the file at c->path with all texts, and datasets without content. E_UNSUPPORTED without HDF5. */
trama_status hdf5_write_frame(const trama_checkpoint *c);
/* Fills in tensors and texts of the open file of c->bytes. */
trama_status hdf5_read_frame(trama_checkpoint *c);
size_t seal_bytes(int n_tensors); /* the user block, which the frame leaves free for the seal */

/* ---- safetensors_read.c, safetensors_write.c ---- */

/* A name of a file that safetensors has: *.safetensors, or its index *.safetensors.index.json. */
bool path_is_safetensors(const char *path);
/* Divides the tensors of a new checkpoint over shards of at most `most` bytes of content, or of one tensor, where they
 * have more. Then the file is an index, and *path, its final name, becomes that of the index. */
void safetensors_divide(trama_checkpoint *c, int64_t most, char **path);
/* Gives the shards of an unfinished checkpoint their final names. */
trama_status checkpoint_name_shards(const trama_checkpoint *c);

/* ---- numpy, convert.c ---- */

bool path_is_npy(const char *path); /* an array of NumPy, or a folder */
bool folder_has_arrays(const char *folder);

/* Whether elements convert: those of equal types, and among floats and among complex numbers all. */
bool elements_can_convert(trama_dtype from, trama_dtype to);
void elements_convert(trama_dtype from, const void *data, trama_dtype to, void *result, int64_t n);
/* The type of floats in a file; words NULL: TRAMA_N_DTYPES. */
trama_status file_dtype_parse(trama_where where, const char *call, const char *words, trama_dtype *dtype);

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

trama_status folder_make(const char *folder); /* if its parent is there */
/* Makes the folder, and removes unfinished checkpoints, which no save is writing. */
trama_status folder_begin(const char *folder);
char *folder_of(const char *path); /* of a file; the caller frees */
char *folder_path(const char *folder, int64_t step, bool unfinished);
/* Gives the file its final name for good, and removes the oldest checkpoints beyond `keep`; 0: all stay. */
trama_status folder_finish(const char *folder, const char *unfinished, const char *path, int keep);
bool path_is_folder(const char *path);

/* ---- choice.c ---- */

/* Whether the name fits one of the patterns between commas; * stands for any characters, ? for one; NULL: all fit. */
bool name_is_chosen(const char *patterns, const char *name);
/* The name in the file of a state: map is "w=weight,b=bias"; a name that is not in it stays. The caller frees. */
char *name_in_file(const char *map, const char *name);
bool name_is_utf8(const char *name);

/* The name of a file until it is complete, and the reverse; the caller frees. */
char *unfinished_path(const char *path);
char *finished_path(const char *path);
bool path_has_ending(const char *path, const char *ending); /* the finished name */
bool name_has_ending(const char *name, const char *ending); /* the name as it is, which is longer */

#endif
