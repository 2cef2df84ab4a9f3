/* SPDX-License-Identifier: Apache-2.0 */
/* Max-min fair rates by the fair share of each link (Charny, Clark, Jain 1995, Congestion control with explicit rate
 * indication): a flow has the least share along its path, and a link divides the rest of its bandwidth among the flows
 * that no other link bounds more. A change is passed on to links whose shares change, and to no others, so that a flow
 * that begins or ends costs as much as the flows that it meets. */
#include "network.h"

#include <math.h>
#include <string.h>

enum {
    MOST_LINKS = 24,     /* of a path */
    MOST_ROUNDS = 10000, /* of links for one change, beyond which rates stay as they are */
};
/* A relative difference of shares that is none: with 1e-6 a step of 1,024 ranks took the same time, and its simulation
 * 1.4 times as long. */
static const double SAME = 1e-3;

typedef struct link_flow {
    int flow, place; /* of this link in the flow's path */
    double bound;    /* the least share of the other links of the path */
} link_flow;

typedef struct flow_link {
    double bandwidth, share;
    double bytes; /* of all flows so far */
    ARRAY(link_flow) flows;
    bool waits; /* for a new share */
} flow_link;

typedef struct net_flow {
    int n, link[MOST_LINKS], at[MOST_LINKS]; /* at: where it stands in the link's flows */
    double left, rate, since;                /* bytes left at the time `since` */
    bool changed;
} net_flow;

struct network {
    const trama_cluster *c;
    int *depth;       /* [switches] */
    bool *narrow;     /* [switches] its link upwards can hold up flows from below */
    flow_link *links; /* up and down of each node; up and down of each switch; the memory of each node */
    int n_links;
    ARRAY(net_flow) flows;
    ARRAY(int) unused;  /* flows */
    ARRAY(int) waiting; /* links */
    ARRAY(int) changed; /* flows */
    event_queue ends;
};

/* ---- Links ---- */

enum { UP, DOWN };
static int of_node(int node, int direction)
{
    return 2 * node + direction;
}
static int of_switch(const network *n, int at, int direction)
{
    return 2 * n->c->nodes.n + 2 * at + direction;
}
static int of_memory(const network *n, int node)
{
    return 2 * (n->c->nodes.n + n->c->switches.n) + node;
}

/* A link upwards that carries all links below it at once holds up no flow. */
static void find_narrow(network *n)
{
    double *below = trama_alloc((size_t)max_i64(1, n->c->switches.n) * sizeof *below);
    for (int i = 0; i < n->c->nodes.n; i++)
        if (n->c->nodes.at[i].parent >= 0)
            below[n->c->nodes.at[i].parent] += n->c->nodes.at[i].bandwidth;
    for (int i = n->c->switches.n - 1; i >= 0; i--) {
        const cluster_switch *s = &n->c->switches.at[i];
        n->narrow[i] = s->parent >= 0 && s->bandwidth < below[i];
        if (s->parent >= 0)
            below[s->parent] += s->bandwidth < below[i] ? s->bandwidth : below[i];
    }
    for (int i = 0; i < n->c->switches.n; i++)
        n->depth[i] = n->c->switches.at[i].parent < 0 ? 0 : n->depth[n->c->switches.at[i].parent] + 1;
    free(below);
}

network *network_new(const trama_cluster *c)
{
    network *n = trama_alloc(sizeof *n);
    n->c = c;
    n->n_links = 3 * c->nodes.n + 2 * c->switches.n;
    n->links = trama_alloc((size_t)n->n_links * sizeof *n->links);
    n->depth = trama_alloc((size_t)max_i64(1, c->switches.n) * sizeof *n->depth);
    n->narrow = trama_alloc((size_t)max_i64(1, c->switches.n));
    for (int i = 0; i < c->nodes.n; i++) {
        n->links[of_node(i, UP)].bandwidth = n->links[of_node(i, DOWN)].bandwidth = c->nodes.at[i].bandwidth;
        n->links[of_memory(n, i)].bandwidth = c->kinds.at[c->nodes.at[i].kind].local;
    }
    for (int i = 0; i < c->switches.n; i++)
        n->links[of_switch(n, i, UP)].bandwidth = n->links[of_switch(n, i, DOWN)].bandwidth =
            c->switches.at[i].bandwidth;
    for (int i = 0; i < n->n_links; i++)
        n->links[i].share = n->links[i].bandwidth;
    find_narrow(n);
    event_queue_index(&n->ends);
    return n;
}

void network_free(network **network_)
{
    network *n = *network_;
    if (!n)
        return;
    for (int i = 0; i < n->n_links; i++)
        ARRAY_FREE(&n->links[i].flows);
    free(n->links);
    free(n->depth);
    free(n->narrow);
    ARRAY_FREE(&n->flows);
    ARRAY_FREE(&n->unused);
    ARRAY_FREE(&n->waiting);
    ARRAY_FREE(&n->changed);
    event_queue_free(&n->ends);
    free(n);
    *network_ = NULL;
}

/* ---- Paths ---- */

static void pass(net_flow *f, int link)
{
    if (f->n < MOST_LINKS)
        f->link[f->n++] = link;
}

/* Adds the links between two ranks to the flow, where there is one, but for those that hold up no flow; returns the
 * latency of all. */
static double find_path(const network *n, int from, int to, net_flow *f)
{
    const int a = cluster_node_of(n->c, from), b = cluster_node_of(n->c, to);
    const cluster_node *source = &n->c->nodes.at[a], *target = &n->c->nodes.at[b];
    if (a == b) {
        if (f)
            pass(f, of_memory(n, a));
        return n->c->kinds.at[source->kind].local_latency;
    }
    double latency = source->latency + target->latency;
    int up = source->parent, down = target->parent;
    if (f)
        pass(f, of_node(a, UP)), pass(f, of_node(b, DOWN));
    while (up != down) {
        const bool rises = n->depth[up] >= n->depth[down];
        int *end = rises ? &up : &down;
        latency += n->c->switches.at[*end].latency;
        if (f && n->narrow[*end])
            pass(f, of_switch(n, *end, rises ? UP : DOWN));
        *end = n->c->switches.at[*end].parent;
    }
    return latency;
}

double network_latency(const network *n, int from, int to)
{
    return find_path(n, from, to, NULL);
}

/* ---- Rates ---- */

static void want_share(network *n, int link)
{
    if (!n->links[link].waits) {
        n->links[link].waits = true;
        *ARRAY_PUSH(&n->waiting) = link;
    }
}

/* The least share of the flow's other links. */
static double bound_elsewhere(const network *n, const net_flow *f, int without)
{
    double least = INFINITY;
    for (int i = 0; i < f->n; i++)
        if (i != without && n->links[f->link[i]].share < least)
            least = n->links[f->link[i]].share;
    return least;
}

/* The share with which the flows, each bounded elsewhere, fill the link. */
static double fair_share(const flow_link *l)
{
    double share = l->bandwidth / (l->flows.n ? l->flows.n : 1);
    for (int bounded = 0, before = -1; bounded > before && l->flows.n;) {
        double rest = l->bandwidth, most = 0;
        before = bounded;
        bounded = 0;
        for (int i = 0; i < l->flows.n; i++) {
            const double bound = l->flows.at[i].bound;
            if (bound < share) {
                rest -= bound;
                most = bound > most ? bound : most;
                bounded++;
            }
        }
        if (bounded == l->flows.n)
            return rest + most; /* it holds up none */
        share = rest / (l->flows.n - bounded);
    }
    return share;
}

static void touch(network *n, int flow)
{
    if (!n->flows.at[flow].changed) {
        n->flows.at[flow].changed = true;
        *ARRAY_PUSH(&n->changed) = flow;
    }
}

/* A share that is kept as it was stays exact within SAME, however often its link is asked. */
static void renew_share(network *n, int link)
{
    flow_link *l = &n->links[link];
    const double share = fair_share(l);
    l->waits = false;
    if (fabs(share - l->share) <= SAME * l->share)
        return;
    l->share = share;
    for (int i = 0; i < l->flows.n; i++) {
        net_flow *f = &n->flows.at[l->flows.at[i].flow];
        touch(n, l->flows.at[i].flow);
        for (int k = 0; k < f->n; k++)
            if (f->link[k] != link) {
                n->links[f->link[k]].flows.at[f->at[k]].bound = bound_elsewhere(n, f, k);
                want_share(n, f->link[k]);
            }
    }
}

static void set_rate(network *n, double now, int flow)
{
    net_flow *f = &n->flows.at[flow];
    f->changed = false;
    if (!f->n)
        return; /* it has ended */
    const double rate = bound_elsewhere(n, f, -1);
    f->left = fmax(0, f->left - f->rate * (now - f->since));
    f->since = now;
    f->rate = rate;
    event_queue_put(&n->ends, now + f->left / rate, flow);
}

static void set_rates(network *n, double now)
{
    int rounds = 0;
    for (int i = 0; i < n->waiting.n; i++)
        if (rounds++ < MOST_ROUNDS)
            renew_share(n, n->waiting.at[i]);
        else
            n->links[n->waiting.at[i]].waits = false;
    n->waiting.n = 0;
    for (int i = 0; i < n->changed.n; i++)
        set_rate(n, now, n->changed.at[i]);
    n->changed.n = 0;
}

/* ---- Flows ---- */

int network_begin(network *n, double now, int from, int to, double bytes)
{
    const int flow = n->unused.n ? n->unused.at[--n->unused.n] : n->flows.n;
    if (flow == n->flows.n)
        ARRAY_PUSH(&n->flows);
    net_flow *f = &n->flows.at[flow];
    const bool changed = f->changed;
    *f = (net_flow){.left = bytes, .since = now, .changed = changed};
    find_path(n, from, to, f);
    for (int i = 0; i < f->n; i++) {
        f->at[i] = n->links[f->link[i]].flows.n;
        *ARRAY_PUSH(&n->links[f->link[i]].flows) =
            (link_flow){.flow = flow, .place = i, .bound = bound_elsewhere(n, f, i)};
        n->links[f->link[i]].bytes += bytes;
        want_share(n, f->link[i]);
    }
    touch(n, flow);
    return flow;
}

static void leave(network *n, int flow)
{
    net_flow *f = &n->flows.at[flow];
    for (int i = 0; i < f->n; i++) {
        flow_link *l = &n->links[f->link[i]];
        const link_flow last = l->flows.at[--l->flows.n];
        l->flows.at[f->at[i]] = last;
        n->flows.at[last.flow].at[last.place] = f->at[i];
        want_share(n, f->link[i]);
    }
    f->n = 0;
    *ARRAY_PUSH(&n->unused) = flow;
}

double network_next(network *n, double now)
{
    set_rates(n, now);
    return n->ends.n ? n->ends.at[0].key : INFINITY;
}

bool network_has_ended(const network *n, double now)
{
    return n->ends.n && n->ends.at[0].key <= now;
}

int network_end(network *n)
{
    const int flow = (int)event_queue_take(&n->ends);
    leave(n, flow);
    return flow;
}

double network_least(const network *n)
{
    double most = 0;
    for (int i = 0; i < n->n_links; i++)
        most = fmax(most, n->links[i].bytes / n->links[i].bandwidth);
    return most;
}

double network_rate(network *n, double now, int flow)
{
    set_rates(n, now);
    return n->flows.at[flow].rate;
}
