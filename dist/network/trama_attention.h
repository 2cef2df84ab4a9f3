/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled dot-product attention. See trama_program.h for errors of builders. */
#ifndef TRAMA_ATTENTION_H
#define TRAMA_ATTENTION_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* Attention of n queries to m keys, for each head (Vaswani et al. 2017):
 *
 *   q [.., heads, n, d], k [.., groups, m, d], v [.., groups, m, e] -> softmax(scale q k' + mask) v [.., heads, n, e]
 *
 * The leading dims broadcast. groups divides heads: heads h g to h g + h - 1 read keys and values g, where
 * h = heads / groups. All three are of one float type. The softmax is computed in f32, of f64 in f64. Memory beside
 * operands and result grows as n + m.
 *
 * mask: NULL, or a value that broadcasts to [.., heads, n, m]. Of type bool, a query attends to the keys where it is
 * true; of the type of q, it is added to the scores. Only the gradient of such a mask, and second derivatives, take
 * memory for all scores. causal: query i attends to keys 0 to i only, counted from the first of both as in PyTorch,
 * whatever n and m are. scale: finite; 0 stands for 1 / sqrt(d). A query that may attend to no key gets zeros, as in
 * PyTorch, and passes no gradient on.
 *
 * The leading dims, groups and n may be split without a message, heads / groups only where groups is 1; d and e are
 * never split. A rank needs all keys and values of its queries. Where their m is split, as the queries' n is, they
 * arrive in parts. Of f32 and f64, a rank takes each part as it comes, while it computes with the one before (the order
 * of a ring: Liu et al. 2023), and sends the parts of their gradients likewise; halves wait for all keys, since each
 * part would round them. Where heads or leading dims can take the split over and that moves fewer bytes, they do. Where
 * m alone is split, as in a cache of keys while a text is generated, a rank attends to its own keys, if results and
 * sums take fewer bytes than keys, halves in f32 (Dao, Haziza, Massa, Sizov 2023, Flash-Decoding). Keys of a causal call always move.
 *
 * trama_result(result, 1) is the logarithm of the sum of exp(scale q k' + mask) over the keys, [.., heads, n]: f32, of
 * f64 operands f64; -inf where there is no key.
 *
 * E_SHAPE where the shapes do not fit each other, E_DTYPE for other types, E_ARGUMENT for another scale. */
#define trama_attention(q, k, v) trama_attention_at(TRAMA_HERE, q, k, v, NULL, false, 0)
#define trama_attention_causal(q, k, v) trama_attention_at(TRAMA_HERE, q, k, v, NULL, true, 0)
#define trama_attention_with(q, k, v, mask, causal, scale) trama_attention_at(TRAMA_HERE, q, k, v, mask, causal, scale)
trama_value *trama_attention_at(trama_where where, trama_value *q, trama_value *k, trama_value *v, trama_value *mask,
                                bool causal, double scale);

TRAMA_API_END
#endif
