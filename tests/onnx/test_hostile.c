/* SPDX-License-Identifier: Apache-2.0 */
/* Models out of hostile hands: damaged bytes are loaded or refused with a message, and never read beyond their end. */
#include "../tasks/harness.h"

#include <dirent.h>

#include "model_maker.h"
#include "suite.h"
#include "trama_onnx.h"

/* The bytes end where readable memory does for the sanitizers: in a block of their own. */
static bool load_bytes(const uint8_t *bytes, size_t n)
{
    trama_program *p = trama_program_create();
    uint8_t *own = malloc(n ? n : 1);
    memcpy(own, bytes, n);
    trama_onnx_source source = {.model = own, .bytes = n};
    trama_onnx *model = trama_onnx_create(p, &source, NULL);
    bool loaded = model;
    demand(loaded == !trama_program_status(p), "a model in spite of %s", trama_program_error(p));
    demand(loaded || strlen(trama_program_error(p)) > 10, "no message");
    trama_onnx_destroy(&model);
    trama_program_destroy(&p);
    free(own);
    return loaded;
}

/* A graph with folded shapes, initializers of several encodings and attributes of each type. */
static uint8_t *some_model(size_t *n)
{
    static const int64_t list[2] = {0, -1};
    static const float floats[6] = {1, 2, 3, 4, 5, 6};
    maker m;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "N,3");
    make_initializer(&m, "w", ONNX_FLOAT, "3,2", floats, sizeof floats);
    Onnx__TensorProto *b = make_initializer(&m, "b", ONNX_FLOAT, "2", NULL, 0);
    b->n_float_data = 2, b->float_data = (float[]){1, 2};
    make_initializer(&m, "target", ONNX_INT64, "2", list, sizeof list);
    make_int(make_node(&m, "Gemm", "x,w,b", "h"), "transA", 0);
    make_node(&m, "Shape", "h", "shape");
    make_int(make_node(&m, "Concat", "shape,target", "list"), "axis", 0);
    make_node(&m, "Reshape", "h,target", "r");
    make_int(make_node(&m, "Softmax", "r", "s"), "axis", -1);
    make_int(make_node(&m, "ReduceSum", "s", "y"), "keepdims", 0);
    make_output(&m, "y");
    uint8_t *bytes = make_bytes(&m, n);
    demand(load_bytes(bytes, *n), "%s", trama_error());
    return bytes;
}

START_TEST(a_truncated_model_is_refused_or_a_shorter_one)
{
    size_t n;
    uint8_t *bytes = some_model(&n);
    for (size_t k = 0; k < n; k++)
        load_bytes(bytes, k);
    free(bytes);
}
END_TEST

/* Changes up to four bytes. */
static void damage(uint8_t *bytes, size_t n, uint64_t *state)
{
    static const uint8_t likely[] = {0, 1, 0x7f, 0x80, 0xff};
    for (int k = random_to(state, 4); k >= 0; k--) {
        size_t at = (size_t)(random_bits(state) % n);
        bytes[at] = random_to(state, 2) ? likely[random_to(state, 5)] : (uint8_t)random_bits(state);
    }
}

static void load_damaged(const uint8_t *bytes, size_t n, int times, uint64_t *state)
{
    uint8_t *copy = malloc(n);
    for (int i = 0; i < times && n; i++) {
        memcpy(copy, bytes, n);
        damage(copy, n, state);
        load_bytes(copy, n);
    }
    free(copy);
}

START_TEST(damaged_bytes_are_refused_or_another_model)
{
    size_t n;
    uint64_t state = 1;
    uint8_t *bytes = some_model(&n);
    load_damaged(bytes, n, suite_is_long() ? 300000 : 20000, &state);
    free(bytes);
}
END_TEST

/* ---- Models of ONNX's own tests ---- */

static void damage_suite(const char *suite, int times, uint64_t *state)
{
    char path[600];
    snprintf(path, sizeof path, "/usr/share/libonnx-testdata/data/%s", suite);
    DIR *list = opendir(path);
    if (!list) {
        printf("skipped: there is no %s, of libonnx-testdata\n", path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(list));) {
        static uint8_t bytes[1 << 16];
        snprintf(path, sizeof path, "/usr/share/libonnx-testdata/data/%s/%s/model.onnx", suite, entry->d_name);
        FILE *f = *entry->d_name == '.' ? NULL : fopen(path, "rb");
        size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
        if (f)
            fclose(f);
        if (n < sizeof bytes)
            load_damaged(bytes, n, times, state);
    }
    closedir(list);
}

START_TEST(damaged_models_of_every_op_are_refused_or_other_models)
{
    uint64_t state = 2;
    damage_suite("node", suite_is_long() ? 500 : 30, &state);
    damage_suite("pytorch-converted", suite_is_long() ? 300 : 20, &state);
}
END_TEST

TESTS(a_truncated_model_is_refused_or_a_shorter_one, damaged_bytes_are_refused_or_another_model,
      damaged_models_of_every_op_are_refused_or_other_models)
