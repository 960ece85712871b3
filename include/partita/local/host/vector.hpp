#pragma once
/// How wide the registers are that the compiler vectorises for; tile and strip sizes follow from it.

namespace partita::on_host {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

}  // namespace partita::on_host
