/* SPDX-License-Identifier: Apache-2.0 */
/* Cross entropy and its gradient against loops in double. */
#include "views.h"

static double naive_loss(const tensor *z, const tensor *labels, double batch)
{
    double loss = 0;
    for (int64_t i = 0; i < z->view.extent[0]; i++) {
        double sum = 0;
        for (int64_t j = 0; j < z->view.extent[1]; j++)
            sum += exp(AT(z, i, j));
        loss += log(sum) - AT(z, i, (int64_t)AT(labels, i));
    }
    return loss / batch;
}

static tensor labels_new(trama_dtype dtype, order how, int64_t batch, int64_t n)
{
    tensor labels = tensor_new(dtype, how, TRAMA_SHAPE(batch));
    for (int64_t i = 0; i < batch; i++)
        PUT(&labels, (double)(i * 7 % n), i);
    return labels;
}

/* every type of logits, labels, memory order; calls check(z, labels) with a global batch of 3 more rows */
static void everywhere(void (*check)(tensor *z, tensor *labels))
{
    static const int64_t shapes[][2] = {{7, 10}, {1, 1}, {33, 3}, {0, 4}, {5, 129}};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
        for (int label = TRAMA_I32; label <= TRAMA_U8; label++)
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
                for (int how = 0; how < N_ORDERS; how++) {
                    tensor z = tensor_random((trama_dtype)dtype, (order)how, trama_shape_of(2, shapes[s]), 1);
                    tensor labels =
                        labels_new((trama_dtype)label, (order)(N_ORDERS - 1 - how), shapes[s][0], shapes[s][1]);
                    z.view.global[0] += 3;
                    check(&z, &labels);
                    tensor_free(&z);
                    tensor_free(&labels);
                }
}

static void check_loss(tensor *z, tensor *labels)
{
    tensor loss = tensor_new(z->view.dtype, PACKED, TRAMA_SCALAR);
    run_binary("cross_entropy", NULL, &loss, z, labels);
    ck_near(z->view.dtype, AT(&loss, 0), naive_loss(z, labels, (double)z->view.global[0]), 16);
    tensor_free(&loss);
}

START_TEST(cross_entropy_is_the_mean_over_the_global_batch)
{
    everywhere(check_loss);
}
END_TEST

static void check_gradient(tensor *z, tensor *labels)
{
    tensor g = tensor_new(z->view.dtype, PACKED, TRAMA_SCALAR);
    tensor out = tensor_new(z->view.dtype, SPARSE, trama_shape_of(2, z->view.extent));
    PUT(&g, 2.5, 0);
    run_op("cross_entropy_grad", NULL, 1, 3, (tensor *[]){&out, z, labels, &g});
    FOR_EACH(&out, i)
    {
        double sum = 0;
        for (int64_t j = 0; j < z->view.extent[1]; j++)
            sum += exp(AT(z, i[0], j));
        const double hit = (int64_t)AT(labels, i[0]) == i[1];
        ck_near(z->view.dtype, at(&out, i), 2.5 / (double)z->view.global[0] * (exp(at(z, i)) / sum - hit), 8);
    }
    ck_assert(outside_untouched(&out));
    tensor_free(&g);
    tensor_free(&out);
}

START_TEST(the_gradient_is_softmax_minus_one_hot)
{
    everywhere(check_gradient);
}
END_TEST

START_TEST(pieces_of_a_batch_sum_to_the_loss_of_the_whole)
{
    tensor z = tensor_random(TRAMA_F64, PACKED, TRAMA_SHAPE(11, 5), 1), labels = labels_new(TRAMA_I64, PACKED, 11, 5);
    tensor whole = tensor_new(TRAMA_F64, PACKED, TRAMA_SCALAR), part = tensor_new(TRAMA_F64, PACKED, TRAMA_SCALAR);
    double sum = 0;
    run_binary("cross_entropy", NULL, &whole, &z, &labels);
    for (int64_t from = 0; from < 11; from += 4) {
        tensor z_piece = z, label_piece = labels;
        z_piece.view.data = element(&z.view, (int64_t[]){from, 0});
        label_piece.view.data = element(&labels.view, (int64_t[]){from});
        z_piece.view.extent[0] = label_piece.view.extent[0] = from + 4 < 11 ? 4 : 11 - from;
        run_binary("cross_entropy", NULL, &part, &z_piece, &label_piece);
        sum += AT(&part, 0);
    }
    ck_near(TRAMA_F64, sum, AT(&whole, 0), 16);
    tensor_free(&z);
    tensor_free(&labels);
    tensor_free(&whole);
    tensor_free(&part);
}
END_TEST

START_TEST(a_label_out_of_range_gives_nan_and_touches_nothing_else)
{
    static const double wrong[] = {-1, 4, 9e15, -9e15};
    for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype = next_float(dtype))
        for (int w = 0; w < 4; w++) {
            tensor z = tensor_random((trama_dtype)dtype, PACKED, TRAMA_SHAPE(3, 4), 1),
                   labels = labels_new(TRAMA_I64, PACKED, 3, 4);
            tensor g = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SCALAR),
                   out = tensor_new((trama_dtype)dtype, PACKED, TRAMA_SHAPE(3, 4));
            PUT(&labels, wrong[w], 1);
            PUT(&g, 1, 0);
            run_op("cross_entropy_grad", NULL, 1, 3, (tensor *[]){&out, &z, &labels, &g});
            FOR_EACH(&out, i)
            ck_assert(isnan(at(&out, i)) == (i[0] == 1));
            run_binary("cross_entropy", NULL, &g, &z, &labels);
            ck_assert(isnan(AT(&g, 0)));
            tensor_free(&z);
            tensor_free(&labels);
            tensor_free(&g);
            tensor_free(&out);
        }
}
END_TEST

START_TEST(large_logits_do_not_overflow)
{
    tensor z = tensor_new(TRAMA_F32, PACKED, TRAMA_SHAPE(1, 3)), labels = labels_new(TRAMA_U8, PACKED, 1, 3);
    tensor loss = tensor_new(TRAMA_F32, PACKED, TRAMA_SCALAR);
    PUT(&z, 0, 0, 0), PUT(&z, 1e4, 0, 1), PUT(&z, -1e4, 0, 2);
    run_binary("cross_entropy", NULL, &loss, &z, &labels);
    ck_assert(AT(&loss, 0) == 1e4);
    tensor_free(&z);
    tensor_free(&labels);
    tensor_free(&loss);
}
END_TEST

RUN_TESTS("loss", cross_entropy_is_the_mean_over_the_global_batch, the_gradient_is_softmax_minus_one_hot,
          pieces_of_a_batch_sum_to_the_loss_of_the_whole, a_label_out_of_range_gives_nan_and_touches_nothing_else,
          large_logits_do_not_overflow)
