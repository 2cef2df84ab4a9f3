/* SPDX-License-Identifier: Apache-2.0 */
/* Constants; random numbers against a plain Philox, itself held to the numbers published with Random123, and their
 * independence of how the tensor is cut. */
#include "views.h"

/* Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), 10 rounds, in place of the counter. */
static void plain_philox(uint32_t *c, uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < 10; round++) {
        const uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ key0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ key1;
        c[3] = (uint32_t)a;
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
}

/* Random123, examples/kat_vectors: counter, key, words of philox4x32 with 10 rounds */
static const struct {
    uint32_t counter[4], key[2], words[4];
} known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

START_TEST(the_plain_philox_gives_the_published_words)
{
    for (int v = 0; v < 3; v++) {
        uint32_t c[4];
        memcpy(c, known[v].counter, sizeof c);
        plain_philox(c, known[v].key[0], known[v].key[1]);
        ck_assert_mem_eq(c, known[v].words, sizeof c);
    }
}
END_TEST

static trama_attributes uniform_attributes(uint64_t seed, uint32_t stream, uint32_t step, double low, double high)
{
    return (trama_attributes){
        .integer = {[SOURCE_SEED] = (int64_t)seed, [SOURCE_STREAM] = stream, [SOURCE_STEP] = step},
        .real = {[SOURCE_LOW] = low, [SOURCE_HIGH] = high}};
}

static double expected(const trama_attributes *a, uint64_t index)
{
    const uint64_t seed = (uint64_t)a->integer[SOURCE_SEED], block = index / 4;
    const double low = a->real[SOURCE_LOW], high = a->real[SOURCE_HIGH];
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)a->integer[SOURCE_STREAM],
                     (uint32_t)a->integer[SOURCE_STEP]};
    plain_philox(c, (uint32_t)seed, (uint32_t)(seed >> 32));
    return low + (high - low) * ((c[index % 4] >> 8) * 0x1p-24);
}

static uint64_t global_index(const tensor *x, const int64_t *index)
{
    uint64_t at = 0;
    for (int d = 0; d < x->view.ndim; d++)
        at = at * (uint64_t)x->view.global[d] + (uint64_t)(x->view.offset[d] + index[d]);
    return at;
}

static void check_uniform(tensor *x, const trama_attributes *attributes)
{
    run_op("uniform", attributes, 1, 0, &x);
    FOR_EACH(x, i)
    ck_near(x->view.dtype, at(x, i), expected(attributes, global_index(x, i)), 1);
    ck_assert(outside_untouched(x));
}

static tensor step_operand(int64_t number)
{
    tensor step = tensor_new(TRAMA_I64, PACKED, TRAMA_SCALAR);
    *(int64_t *)step.view.data = number; /* as it is, with all of its bits */
    return step;
}

START_TEST(the_published_words_come_out_of_the_kernel)
{
    const trama_attributes zero = uniform_attributes(0, 0, 0, 0, 1);
    tensor x = tensor_new(TRAMA_F64, PACKED, TRAMA_SHAPE(4)), *out = &x;
    run_op("uniform", &zero, 1, 0, &out);
    for (int w = 0; w < 4; w++)
        ck_assert(AT(&x, w) == (known[0].words[w] >> 8) / 16777216.0);
    tensor_free(&x);
}
END_TEST

START_TEST(an_element_depends_on_its_global_index_alone)
{
    const trama_attributes attributes = uniform_attributes(0xfedcba9876543210, 77, 0x80000001, -3, 2);
    static const int64_t boxes[][3][3] = {
        /* extent, offset, global */
        {{5, 7, 9}, {0, 0, 0}, {5, 7, 9}}, {{3, 7, 9}, {2, 0, 0}, {5, 7, 9}},
        {{5, 3, 9}, {0, 4, 0}, {5, 7, 9}}, {{2, 3, 4}, {1, 2, 3}, {5, 7, 9}},
        {{1, 1, 1}, {4, 6, 8}, {5, 7, 9}}, {{0, 7, 9}, {5, 0, 0}, {5, 7, 9}},
        {{3, 0, 9}, {0, 7, 0}, {5, 7, 9}}, {{2, 2, 2}, {70000, 70000, 70000}, {80000, 80000, 80000}},
    };
    for (int dtype = 0; dtype < 2; dtype++)
        for (size_t b = 0; b < sizeof boxes / sizeof boxes[0]; b++)
            for (int how = 0; how < N_ORDERS; how++) {
                tensor x = tensor_new((trama_dtype)dtype, (order)how, trama_shape_of(3, boxes[b][0]));
                memcpy(x.view.offset, boxes[b][1], sizeof boxes[b][1]);
                memcpy(x.view.global, boxes[b][2], sizeof boxes[b][2]);
                check_uniform(&x, &attributes);
                tensor_free(&x);
            }
}
END_TEST

/* The step of the operand and not of the attributes, in every type, order and box; and the highest bits do not count. */
START_TEST(draw_has_the_numbers_of_the_step_that_its_operand_says)
{
    static const int64_t steps[] = {0, 1, 0x80000001, 0xffffffff, INT64_C(0x500000003), -1};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (int how = 0; how < N_ORDERS && trama_dtype_is_float((trama_dtype)dtype); how++)
            for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
                const trama_attributes attributes = uniform_attributes(0xfedcba9876543210, 77, 12345, -3, 2),
                                       wanted = uniform_attributes(0xfedcba9876543210, 77, (uint32_t)steps[s], -3, 2);
                tensor x = tensor_new((trama_dtype)dtype, (order)how, TRAMA_SHAPE(3, 5)), step = step_operand(steps[s]);
                x.view.offset[0] = 2;
                x.view.offset[1] = 1;
                x.view.global[0] = 6;
                x.view.global[1] = 7;
                run_op("draw", &attributes, 1, 1, (tensor *[]){&x, &step});
                FOR_EACH(&x, i)
                ck_near(x.view.dtype, at(&x, i), expected(&wanted, global_index(&x, i)), 1);
                ck_assert(outside_untouched(&x));
                tensor_free(&x);
                tensor_free(&step);
            }
}
END_TEST

START_TEST(draw_gives_the_published_words)
{
    const trama_attributes zero = uniform_attributes(0, 0, 99, 0, 1);
    tensor x = tensor_new(TRAMA_F64, PACKED, TRAMA_SHAPE(4)), step = step_operand(0);
    run_op("draw", &zero, 1, 1, (tensor *[]){&x, &step});
    for (int w = 0; w < 4; w++)
        ck_assert(AT(&x, w) == (known[0].words[w] >> 8) / 16777216.0);
    tensor_free(&x);
    tensor_free(&step);
}
END_TEST

START_TEST(a_scalar_is_element_0)
{
    const trama_attributes attributes = uniform_attributes(42, 1, 2, 0, 10);
    tensor x = tensor_new(TRAMA_F64, PACKED, TRAMA_SCALAR);
    check_uniform(&x, &attributes);
    tensor_free(&x);
}
END_TEST

START_TEST(streams_steps_and_both_halves_of_the_seed_count)
{
    const trama_attributes attributes[] = {
        uniform_attributes(1, 0, 0, 0, 1),
        uniform_attributes(2, 0, 0, 0, 1),
        uniform_attributes(1ull << 32 | 1, 0, 0, 0, 1),
        uniform_attributes(1, 1, 0, 0, 1),
        uniform_attributes(1, 0, 1, 0, 1),
    };
    double first[5];
    for (int a = 0; a < 5; a++) {
        tensor x = tensor_new(TRAMA_F64, PACKED, TRAMA_SHAPE(3));
        check_uniform(&x, &attributes[a]);
        first[a] = AT(&x, 0);
        for (int b = 0; b < a; b++)
            ck_assert(first[a] != first[b]);
        tensor_free(&x);
    }
}
END_TEST

START_TEST(fill_sets_every_element_in_every_type)
{
    static const double values[] = {0, -2.5, 300, INFINITY, -INFINITY};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++)
        for (int v = 0; v < 5; v++)
            for (int how = 0; how < N_ORDERS; how++) {
                const trama_attributes attributes = {.real = {[SOURCE_VALUE] = values[v]}};
                tensor x = tensor_new((trama_dtype)dtype, (order)how, TRAMA_SHAPE(3, 5)), *out = &x;
                run_op("fill", &attributes, 1, 0, &out);
                FOR_EACH(&x, i)
                ck_assert(at(&x, i) == element_held((trama_dtype)dtype, values[v]));
                ck_assert(outside_untouched(&x));
                tensor_free(&x);
            }
}
END_TEST

RUN_TESTS("source", the_plain_philox_gives_the_published_words, the_published_words_come_out_of_the_kernel,
          an_element_depends_on_its_global_index_alone, a_scalar_is_element_0,
          draw_has_the_numbers_of_the_step_that_its_operand_says, draw_gives_the_published_words,
          streams_steps_and_both_halves_of_the_seed_count, fill_sets_every_element_in_every_type)
