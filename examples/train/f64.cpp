#include "precision.hpp"

template arrangement cheapest<double>(const partita::communicator&, const partita::queue<partita::host>&,
                                      const partita::dataset&, const command&);
template partita::training_result train<double>(const partita::communicator&,
                                                const partita::queue<partita::host>&, const arrangement&,
                                                const partita::dataset&, const command&,
                                                const partita::epoch_observer&);
