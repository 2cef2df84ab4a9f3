/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt of a fuzzer at the text of a described machine: any bytes make a machine whose ranks all have a place, or
 * are refused with a message that names a line. Ends the process where neither holds. */
#ifndef FUZZ_CLUSTER_H
#define FUZZ_CLUSTER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

static inline void fuzz_cluster(const unsigned char *bytes, size_t n)
{
    enum { MOST_TABLE = 4096 };
    char *source = calloc(n + 1, 1);
    trama_cluster *c = NULL;
    memcpy(source, bytes, n);
    const trama_status status = trama_cluster_create(source, &c);
    bool good = status ? !c && strstr(trama_error(), "line ") : c && trama_cluster_ranks(c) > 0;
    if (good && c && c->ranks <= MOST_TABLE) {
        machine *m = cluster_machine(c, c->ranks);
        good = m->n_places >= m->n_ranks;
        for (int i = 0; good && i < m->n_places; i++)
            good = m->places[i].workers >= 1 && m->places[i].rank >= (i ? m->places[i - 1].rank : 0);
        machine_destroy(&m);
    }
    if (!good) {
        fprintf(stderr, "fuzz: status %d, '%s' for: %s\n", (int)status, trama_error(), source);
        abort();
    }
    trama_cluster_destroy(&c);
    free(source);
}

#endif
