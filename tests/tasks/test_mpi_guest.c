/* SPDX-License-Identifier: Apache-2.0 */
/* Trama as a guest of a program of several ranks, which starts no MPI itself. */
#include "hosted.h"

#include "cycles.h"

/* The first start brings MPI with threads, files and variables of its own, which stay until exit; nothing else does. */
START_TEST(a_host_finds_everything_as_it_was)
{
    host h;
    host_start(&h);
    snapshot before, during, after;
    for (int i = 0; i < 3; i++) {
        snapshot_take(&before, &h);
        start();
        for (int k = 0; k < 2; k++) {
            snapshot_take(&during, &h);
            demand_undisturbed(&before, &during, k ? "after a program" : "after trama_start");
            snapshot_free(&during);
            train_bits("dp=2,mp=2");
        }
        stop();
        snapshot_take(&after, &h);
        if (i == 0) {
            demand(!getenv("OMPI_MCA_mpi_yield_when_idle"), "Trama's own variable for MPI stays");
            snapshot_free(&before);
            snapshot_take(&during, &h);
            before.environment = during.environment;
            before.files = during.files;
            before.threads = during.threads;
        }
        demand_equal(&before, &after);
        snapshot_free(&before);
        snapshot_free(&after);
    }
    host_end(&h);
}
END_TEST

TESTS(a_host_finds_everything_as_it_was, a_hundred_starts_and_stops_leave_nothing_behind)
