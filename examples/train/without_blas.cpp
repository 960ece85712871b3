#include "run.hpp"

partita::on_host::gemm_backend dense_products() { return {}; }
