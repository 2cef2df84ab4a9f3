/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of a group of one GPU: NCCL is called, and each kind gives the member what it gave, scaled. */
#define TESTS_ON_GPU
#include "views.h"

#include "work_gpu.h"

#if TRAMA_HAVE_NCCL
#include <nccl.h>

static void exchange_alone(const trama_view *device, const gpu *g, void *with)
{
    work w = *(const work *)with;
    w.views = (trama_view[]){device[0], device[1]};
    w.n_views = 2;
    work_cuda_collective(&w, g);
}

static void check_alone(ncclComm_t comm, collective_kind kind, trama_dtype dtype, int64_t n, double scale)
{
    tensor to = tensor_new(dtype, PACKED, TRAMA_SHAPE(n)), from = tensor_random(dtype, PACKED, TRAMA_SHAPE(n), 7);
    collective c = {.kind = kind, .comm = comm, .n = 1, .count = n};
    work w = {.kind = &work_collective, .collective = &c, .combine = COMBINE_SUM, .scale = scale};
    const trama_view views[] = {to.view, from.view};
    on_gpu_run(2, 1, views, exchange_alone, &w);
    FOR_EACH(&to, i)
    ck_near(dtype, at(&to, i), scale * at(&from, i), 1);
    tensor_free(&to);
    tensor_free(&from);
}

START_TEST(every_kind_gives_a_lone_member_its_own)
{
    ncclComm_t comm;
    const int device = 0;
    ck_assert_int_eq(ncclCommInitAll(&comm, 1, &device), ncclSuccess);
    for (int kind = COLLECTIVE_ALL_GATHER; kind <= COLLECTIVE_ALL_REDUCE; kind++)
        for (int dtype = 0; dtype < TRAMA_N_DTYPES; dtype++) {
            check_alone(comm, (collective_kind)kind, (trama_dtype)dtype, 1000, 1);
            check_alone(comm, (collective_kind)kind, (trama_dtype)dtype, 1, 1);
            if (kind == COLLECTIVE_ALL_REDUCE && trama_dtype_is_float((trama_dtype)dtype))
                check_alone(comm, (collective_kind)kind, (trama_dtype)dtype, 1000, 0.5);
        }
    ck_assert_int_eq(ncclCommDestroy(comm), ncclSuccess);
}
END_TEST

RUN_TESTS("cuda_collective", every_kind_gives_a_lone_member_its_own)

#else

int main(void)
{
    printf("skipped: this Trama was built without NCCL\n");
    return 77;
}

#endif
