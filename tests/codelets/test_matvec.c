/* SPDX-License-Identifier: Apache-2.0 */
/* Products with a vector: each element has the same bits whichever others a call computes. */
#include "matrices.h"

/* Part of the result along dim, with the part of the operand that has that dim. */
static void run_part(const tensor *out, const tensor *x, const tensor *y, const trama_attributes *with, bool of_x,
                     int64_t from, int64_t n)
{
    tensor parts[] = {*out, *x, *y};
    const bool tx = with->integer[MATMUL_TRANS_X], ty = with->integer[MATMUL_TRANS_Y];
    const int dims[] = {of_x ? 0 : 1, tx ? 1 : 0, ty ? 0 : 1};
    for (int a = 0; a < 3; a++)
        if (a == 0 || (a == 1) == of_x) {
            trama_view *v = &parts[a].view;
            v->data = (char *)v->data + from * v->stride[dims[a]] * (int64_t)trama_dtype_size(v->dtype);
            v->extent[dims[a]] = n;
            v->offset[dims[a]] = from;
        }
    run_binary("matmul", with, &parts[0], &parts[1], &parts[2]);
}

/* Entries round; multiples of 1/64 do not. */
static void roughen(tensor *t)
{
    FOR_EACH(t, i)
    put(t, i, sin(1000 * at(t, i) + (double)i[0] + 0.1 * (double)i[1]));
}

START_TEST(an_element_of_a_product_with_a_vector_has_the_same_bits_in_every_part)
{
    enum { K = 37 };
    static const int64_t widths[] = {EACH_VARIANT, 3, 64, 1025, 4096};
    for (int i = 0; i < 2 * 2 * 2 * 2 * N_ORDERS; i++) {
        const trama_dtype dtype = i & 1 ? TRAMA_F32 : TRAMA_F64;
        const bool tx = i & 2, ty = i & 4, of_x = i & 8;
        const order how = (order)(i >> 4);
        const trama_attributes with = {.integer = {[MATMUL_TRANS_X] = tx, [MATMUL_TRANS_Y] = ty}};
        const int64_t m = of_x ? LENGTH : 1, n = of_x ? 1 : LENGTH;
        tensor x = tensor_random(dtype, how, matrix_shape(0, NULL, m, K, tx), 1),
               y = tensor_random(dtype, how, matrix_shape(0, NULL, K, n, ty), 2);
        tensor whole = tensor_new(dtype, PACKED, TRAMA_SHAPE(m, n)), cut = tensor_new(dtype, PACKED, TRAMA_SHAPE(m, n));
        roughen(&x);
        roughen(&y);
        run_part(&whole, &x, &y, &with, of_x, 0, LENGTH);
        FOR_EACH(&whole, at_index)
        ck_assert(fabs(at(&whole, at_index) - naive_product(&x, &y, &whole, at_index, tx, ty)) <
                  (dtype == TRAMA_F32 ? 1e-5 : 1e-13));
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            for (int64_t from = 0; from < LENGTH; from += widths[w])
                run_part(&cut, &x, &y, &with, of_x, from, from + widths[w] > LENGTH ? LENGTH - from : widths[w]);
            ck_assert_msg(!memcmp(cut.memory, whole.memory, whole.bytes), "parts of %d, case %d", (int)widths[w], i);
        }
        tensor_free(&x);
        tensor_free(&y);
        tensor_free(&whole);
        tensor_free(&cut);
    }
}
END_TEST

/* Rows with a matrix each, as a query beside the keys of its sequence, and with one that is repeated: each has the bits
 * of its own product, whichever of them are in one call. */
START_TEST(vectors_with_matrices_of_their_own_have_the_same_bits_in_every_batch)
{
    enum { B = 5, K = 67, N = 130 };
    static const trama_dtype types[] = {TRAMA_F32, TRAMA_F64, TRAMA_BF16};
    for (int i = 0; i < 12; i++) {
        const trama_dtype dtype = types[i % 3];
        const bool repeated = i / 3 % 2, ty = i / 6;
        const trama_attributes with = {.integer = {[MATMUL_TRANS_Y] = ty}};
        tensor x = tensor_random(dtype, PACKED, TRAMA_SHAPE(B, 1, K), 1),
               y = tensor_random(dtype, PACKED, ty ? TRAMA_SHAPE(B, N, K) : TRAMA_SHAPE(B, K, N), 2);
        tensor whole = tensor_new(dtype, PACKED, TRAMA_SHAPE(B, 1, N)),
               cut = tensor_new(dtype, PACKED, TRAMA_SHAPE(B, 1, N));
        y.view.stride[0] = repeated ? 0 : y.view.stride[0];
        run_binary("matmul", &with, &whole, &x, &y);
        for (int b = 0; b < B; b++) {
            tensor part[] = {cut, x, y};
            for (int a = 0; a < 3; a++) {
                trama_view *v = &part[a].view;
                v->data = (char *)v->data + b * v->stride[0] * (int64_t)trama_dtype_size(dtype);
                v->extent[0] = 1;
                v->offset[0] = b;
            }
            run_binary("matmul", &with, &part[0], &part[1], &part[2]);
        }
        ck_assert_msg(!memcmp(cut.memory, whole.memory, whole.bytes), "case %d", i);
        tensor_free(&x);
        tensor_free(&y);
        tensor_free(&whole);
        tensor_free(&cut);
    }
}
END_TEST

RUN_TESTS("matvec", an_element_of_a_product_with_a_vector_has_the_same_bits_in_every_part,
          vectors_with_matrices_of_their_own_have_the_same_bits_in_every_batch)
