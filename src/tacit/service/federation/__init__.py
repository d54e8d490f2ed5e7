"""A sum over two servers between real machines: messages, services, clients.

messages      sealing            a half of a report that one operator alone can open;
                                 the fields of a round's manifest
              two_halves         a client's protected report as the two sealed halves
              seed_batches       what the two operators tell each other, and their sums
              invitation         what a client agrees to when it joins
              rotation           new signing keys, signed by the old ones
              new_items          items that came after a run's catalog
aggregators   store              what one keeps on its disk
              aggregator         leader and helper: one class with a role
              intake             reports on their way into the leader
              tickets            which clients may report, if not all
              operator_endpoints, operator_client   what operators ask of each other
coordinator   coordinated_run    broadcasts, sums and the model, without anybody's data
              coordinator        opens rounds, adds up, publishes
              coordinator_endpoints
clients       accepted_round     a round that a client has nothing against
              exchange           what a client fetches and sends
              history, history_file   a user's items and what was shown, as files
              client_folder      what a client keeps on the disk
              client             one user's client: joins, answers rounds, ranks, leaves
              simulated_clients, posting   many in one process, for trials and load
operators     coarse, overview   what an operator may see of a service
              operator_page, operator_metrics
processes     settings, operator_keys, services
"""
