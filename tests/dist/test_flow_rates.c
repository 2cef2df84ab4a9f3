/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of flows that share links, against progressive filling. */
#include <math.h>

#include "network.h"
#include "suite.h"

enum { NODES = 6, SWITCHES = 3, FLOWS = 12, LINKS = 2 * (NODES + SWITCHES) };

/* Three switches, the last two of which hang in the first by narrow links; two nodes in each. */
static const char narrow[] = "kind n\n switch a\n switch b in a 3GB/s 0s\n switch c in a 2GB/s 0s\n"
                             "nodes 2 n in a 2GB/s 0s\n nodes 2 n in b 2GB/s 0s\n nodes 2 n in c 5GB/s 0s\n";

/* Bits of the links of a path: up and down of a node, then of a switch. */
static unsigned path_of(int from, int to)
{
    unsigned links = 1u << 2 * from | 1u << (2 * to + 1);
    if (from / 2 != to / 2) {
        links |= from / 2 ? 1u << (2 * (NODES + from / 2)) : 0;
        links |= to / 2 ? 1u << (2 * (NODES + to / 2) + 1) : 0;
    }
    return links;
}

/* Progressive filling (Bertsekas and Gallager 1992, Data Networks, 6.5.2): all rates rise together until a link is
 * full, whose flows then stay as they are. */
static void fill(int n, const unsigned *path, double *rate)
{
    static const double bandwidth[] = {2, 2, 2, 2, 5, 5};
    double left[LINKS];
    bool fixed[FLOWS] = {false};
    for (int l = 0; l < LINKS; l++)
        left[l] = 1e9 * (l < 2 * NODES ? bandwidth[l / 2] : l / 2 - NODES == 1 ? 3 : 2);
    for (int f = 0; f < n; f++)
        rate[f] = 0;
    for (int open = n; open;) {
        double rise = INFINITY;
        int users[LINKS] = {0};
        for (int l = 0; l < LINKS; l++) {
            for (int f = 0; f < n; f++)
                users[l] += !fixed[f] && path[f] >> l & 1;
            if (users[l])
                rise = fmin(rise, left[l] / users[l]);
        }
        for (int f = 0; f < n; f++)
            rate[f] += fixed[f] ? 0 : rise;
        for (int l = 0; l < LINKS; l++)
            left[l] -= users[l] * rise;
        for (int f = 0; f < n; f++)
            for (int l = 0; l < LINKS && !fixed[f]; l++)
                if (path[f] >> l & 1 && left[l] < 1) {
                    fixed[f] = true;
                    open--;
                }
    }
}

static int random_number(unsigned *seed, int below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (int)((*seed >> 8) % (unsigned)below);
}

START_TEST(rates_are_those_of_progressive_filling)
{
    trama_cluster *c;
    ck_assert(!trama_cluster_create(narrow, &c));
    unsigned seed = 1;
    for (int trial = 0; trial < 300; trial++) {
        network *net = network_new(c);
        unsigned path[FLOWS];
        int flow[FLOWS], n = 1 + random_number(&seed, FLOWS);
        for (int f = 0; f < n; f++) {
            const int from = random_number(&seed, NODES), to = (from + 1 + random_number(&seed, NODES - 1)) % NODES;
            path[f] = path_of(from, to);
            flow[f] = network_begin(net, 0, from, to, 1e12 + (f == 0 ? -0.9e12 : 0));
            if (random_number(&seed, 2))
                network_next(net, 0);
        }
        double rate[FLOWS];
        fill(n, path, rate);
        for (int f = 0; f < n; f++)
            ck_assert_msg(fabs(network_rate(net, 0, flow[f]) - rate[f]) < 1e-3 * rate[f],
                          "trial %d, flow %d of %d: %g, not %g", trial, f, n, network_rate(net, 0, flow[f]), rate[f]);
        /* The first flow to end leaves its bandwidth to the others. */
        const double end = network_next(net, 0);
        const int ended = network_end(net);
        int gone = 0;
        while (flow[gone] != ended)
            gone++;
        path[gone] = path[n - 1];
        flow[gone] = flow[n - 1];
        fill(n - 1, path, rate);
        for (int f = 0; f < n - 1; f++)
            ck_assert_double_eq_tol(network_rate(net, end, flow[f]), rate[f], 1e-3 * rate[f]);
        network_free(&net);
    }
    trama_cluster_destroy(&c);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {rates_are_those_of_progressive_filling};
    return suite_run("flow_rates", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
