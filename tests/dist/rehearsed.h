/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsals on machines that tests describe, and their figures. */
#ifndef TESTS_REHEARSED_H
#define TESTS_REHEARSED_H

#include "suite.h"
#include "trama_rehearsal.h"

static inline trama_cluster *made(const char *source)
{
    trama_cluster *c = NULL;
    ck_assert_msg(!trama_cluster_create(source, &c), "%s", trama_error());
    return c;
}

static inline trama_rehearsal *rehearsed(const trama_target *t, const char *cluster, const trama_rehearsal_options *o)
{
    trama_cluster *c = made(cluster);
    trama_rehearsal *r = NULL;
    ck_assert_msg(!trama_rehearse(t, c, o, &r), "%s", trama_error());
    trama_cluster_destroy(&c);
    return r;
}

static inline trama_rehearsal_report report_of(const trama_rehearsal *r)
{
    trama_rehearsal_report f = {.size = sizeof f};
    ck_assert(!trama_rehearsal_read(r, &f));
    return f;
}

static inline trama_rehearsal_report report_on(const trama_target *t, const char *cluster,
                                               const trama_rehearsal_options *o)
{
    trama_rehearsal *r = rehearsed(t, cluster, o);
    const trama_rehearsal_report report = report_of(r);
    trama_rehearsal_destroy(&r);
    return report;
}

#endif
