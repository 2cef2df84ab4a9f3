/* SPDX-License-Identifier: Apache-2.0 */
/* trama checkpoint: lists and verifies a checkpoint, compares two, and writes it in other formats. */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "file_names.h"
#include "must.h"

enum { KEY_COMPARE = 256, KEY_NPY, KEY_TO, KEY_STATES, KEY_NAMES, KEY_DTYPE, KEY_SHARD_BYTES };

static const struct argp_option options[] = {
    {"verify", 'v', NULL, 0, "read all states, and compare their check sums", 0},
    {"compare", KEY_COMPARE, "FILE", 0, "tell the first state and index where another checkpoint differs", 0},
    {"npy", KEY_NPY, "FOLDER", 0, "write each state there, as NAME.npy, with _ for letters that names of files lack",
     0},
    {"to", KEY_TO, "FILE", 0, "write it as FILE.h5, FILE.safetensors or FILE.npz", 0},
    {"states", KEY_STATES, "PATTERNS", 0, "with --to: these states, such as 'w*,b?'", 0},
    {"names", KEY_NAMES, "MAP", 0, "with --to: other names in the new file, such as 'w=0.weight,b=0.bias'", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0, "with --to: floats as f64, f32, f16 or bf16", 0},
    {"shard-bytes", KEY_SHARD_BYTES, "N", 0,
     "with --to FILE.safetensors: several files of at most N bytes, and an index", 0},
    {0}};

static const char doc[] =
    "Lists the states of a checkpoint, and its texts: of a file of trama_save (.h5), of safetensors "
    "(.safetensors, .safetensors.index.json), of NumPy (.npy, .npz), or of all files .npy of a folder.\vThe exit status is 1 "
    "where the file is "
    "damaged, and where two checkpoints differ. --compare and --npy have each state in memory as a whole, one at a "
    "time.";

typedef struct request {
    const char *file, *other, *folder, *to;
    trama_checkpoint_write_options how; /* with `to` */
    bool verify;
} request;

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    request *r = state->input;
    switch (key) {
    case 'v':
        r->verify = true;
        return 0;
    case KEY_COMPARE:
        r->other = text;
        return 0;
    case KEY_NPY:
        r->folder = text;
        return 0;
    case KEY_TO:
        r->to = text;
        return 0;
    case KEY_STATES:
        r->how.states = text;
        return 0;
    case KEY_NAMES:
        r->how.names = text;
        return 0;
    case KEY_DTYPE:
        r->how.dtype = text;
        return 0;
    case KEY_SHARD_BYTES:
        r->how.shard_bytes = argument_integer(state, "--shard-bytes", text, 1, INT64_MAX);
        return 0;
    case ARGP_KEY_ARG:
        if (r->file)
            argp_error(state, "'%s': there is one file; the other goes with --compare", text);
        r->file = text;
        return 0;
    case ARGP_KEY_END:
        if (!r->file)
            argp_error(state, "the file is missing");
        if (!r->to && (r->how.states || r->how.names || r->how.dtype || r->how.shard_bytes))
            argp_error(state, "--states, --names, --dtype and --shard-bytes go with --to FILE");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Listing ---- */

static void print_shape(trama_shape shape)
{
    putchar('[');
    for (int d = 0; d < shape.ndim; d++)
        printf("%s%" PRId64, d ? "," : "", shape.dim[d]);
    putchar(']');
}

static void list(const trama_checkpoint *c)
{
    for (int i = 0; i < trama_checkpoint_key_count(c); i++) {
        const char *key = trama_checkpoint_key(c, i);
        printf("%s = %s\n", key, trama_checkpoint_get(c, key));
    }
    for (int i = 0; i < trama_checkpoint_count(c); i++) {
        printf("%s %s ", trama_checkpoint_name(c, i), trama_dtype_name(trama_checkpoint_dtype(c, i)));
        print_shape(trama_checkpoint_shape(c, i));
        putchar('\n');
    }
}

static void verify(const trama_checkpoint *c)
{
    for (int i = 0; i < trama_checkpoint_count(c); i++)
        must(trama_checkpoint_verify(c, i));
    printf(trama_checkpoint_is_summed(c) ? "%d states are as they were saved\n"
                                         : "%d states can be read; the format has no check sums\n",
           trama_checkpoint_count(c));
}

/* ---- Contents ---- */

static size_t bytes_of(const trama_checkpoint *c, int i)
{
    return (size_t)trama_shape_count(trama_checkpoint_shape(c, i)) * trama_dtype_size(trama_checkpoint_dtype(c, i));
}

/* The caller frees. */
static unsigned char *content_of(const trama_checkpoint *c, int i)
{
    const size_t bytes = bytes_of(c, i);
    unsigned char *content = must_allocate((int64_t)bytes, 1);
    must(trama_checkpoint_read(c, i, content, bytes));
    return content;
}

static void print_index(trama_shape shape, int64_t element)
{
    int64_t index[TRAMA_MAX_NDIM];
    for (int d = shape.ndim - 1; d >= 0; d--) {
        index[d] = element % shape.dim[d];
        element /= shape.dim[d];
    }
    putchar('[');
    for (int d = 0; d < shape.ndim; d++)
        printf("%s%" PRId64, d ? "," : "", index[d]);
    putchar(']');
}

static bool same_content(const trama_checkpoint *a, int i, const trama_checkpoint *b, int j)
{
    const size_t bytes = bytes_of(a, i);
    size_t at = 0;
    unsigned char *x = content_of(a, i), *y = content_of(b, j);
    while (at < bytes && x[at] == y[at])
        at++;
    if (at < bytes) {
        printf("%s differs first at ", trama_checkpoint_name(a, i));
        print_index(trama_checkpoint_shape(a, i), (int64_t)(at / trama_dtype_size(trama_checkpoint_dtype(a, i))));
        putchar('\n');
    }
    free(x);
    free(y);
    return at == bytes;
}

static bool same(const trama_checkpoint *a, const trama_checkpoint *b)
{
    for (int i = 0; i < trama_checkpoint_count(a); i++) {
        const char *name = trama_checkpoint_name(a, i);
        const int j = trama_checkpoint_find(b, name);
        if (j < 0 || trama_checkpoint_dtype(a, i) != trama_checkpoint_dtype(b, j) ||
            !trama_shape_equal(trama_checkpoint_shape(a, i), trama_checkpoint_shape(b, j))) {
            printf("%s is %s\n", name, j < 0 ? "in the first only" : "of another shape or element type");
            return false;
        }
        if (!same_content(a, i, b, j))
            return false;
    }
    for (int j = 0; j < trama_checkpoint_count(b); j++)
        if (trama_checkpoint_find(a, trama_checkpoint_name(b, j)) < 0) {
            printf("%s is in the second only\n", trama_checkpoint_name(b, j));
            return false;
        }
    printf("the states are equal\n");
    return true;
}

static void write_arrays(const trama_checkpoint *c, const char *folder)
{
    for (int i = 0; i < trama_checkpoint_count(c); i++) {
        char *path = file_of_name(folder, trama_checkpoint_name(c, i), ".npy");
        unsigned char *content = content_of(c, i);
        must(trama_write_npy(path, trama_checkpoint_dtype(c, i), trama_checkpoint_shape(c, i), content));
        free(content);
        free(path);
    }
}

int command_checkpoint(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .args_doc = "FILE", .doc = doc};
    request r = {.file = NULL};
    trama_checkpoint *c = NULL, *other = NULL;
    bool good = true;
    argp_parse(&parser, argc, argv, 0, NULL, &r);
    must(trama_checkpoint_open(r.file, &c));
    if (r.other)
        must(trama_checkpoint_open(r.other, &other));
    if (r.verify)
        verify(c);
    if (r.other)
        good = same(c, other);
    if (r.folder)
        write_arrays(c, r.folder);
    if (r.to)
        must(trama_checkpoint_write(c, r.to, &r.how));
    if (!r.verify && !r.other && !r.folder && !r.to)
        list(c);
    trama_checkpoint_destroy(&c);
    trama_checkpoint_destroy(&other);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
