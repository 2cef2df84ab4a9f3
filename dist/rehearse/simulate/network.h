/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as flows that share links. Each flow has the max-min fair rate along its path in the tree of switches: the
 * flow model of SimGrid (Velho, Schnorr, Casanova, Legrand 2013, On the validity of flow-level TCP network models for
 * grid and cloud simulations). It knows no plan and no message. */
#ifndef NETWORK_H
#define NETWORK_H

#include "cluster.h"
#include "event_queue.h"

typedef struct network network;

network *network_new(const trama_cluster *c);
void network_free(network **n);

/* Seconds from the begin of a message to its first byte. */
double network_latency(const network *n, int from, int to);

/* Begins a flow of bytes between two ranks now, and returns its number, which is free again when it has ended. */
int network_begin(network *n, double now, int from, int to, double bytes);

/* The time at which the next flow ends, INFINITY without flows. */
double network_next(network *n, double now);

/* Whether a flow has ended by now, at the rates of the last call of network_next; and that flow, which is removed. */
bool network_has_ended(const network *n, double now);
int network_end(network *n);

/* The time that the bytes of all flows so far take at least: on one link, at its whole bandwidth. */
double network_least(const network *n);

/* The rate of a flow, for tests. */
double network_rate(network *n, double now, int flow);

#endif
