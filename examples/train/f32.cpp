#include "precision.hpp"

template arrangement cheapest<float>(const partita::communicator&, const partita::queue<partita::host>&,
                                     const partita::dataset&, const command&);
template partita::training_result train<float>(const partita::communicator&,
                                               const partita::queue<partita::host>&, const arrangement&,
                                               const partita::dataset&, const command&,
                                               const partita::epoch_observer&);
