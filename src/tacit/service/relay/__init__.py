"""Local reports between real machines: a relay that shuffles, a collector that counts.

messages    messages            a protected report, cut into messages of equal length
            uploads             sealed messages of one client, in a constant size;
                                the fields of an epoch's manifest
            batches             shuffled messages, from the relay to the collector
relay       relay_store         what a relay keeps on its disk
            scattered_file      messages at random places of a file
            digests             which uploads and tickets there were, sorted
            relay               takes uploads, waits, shuffles, forwards, destroys
            relay_intake        uploads on their way in
            relay_endpoints     what the collector asks of a relay
            forwarding          its way to the collector
            destroying          how its operator ends a round
collector   collected_run       broadcasts, messages and the model
            collector           opens epochs, opens seals, aggregates, publishes
            opening             seals to messages, in several processes
            collector_endpoints what the relay hands over
            relay_client        its way to the relay
both        settings, services  from files to processes
            overview            what an operator may see of its own service
            one_machine         both on one machine, for a trial

An epoch is a round of the method. `tacit.service.federation` has what both share:
invitation, signing keys, the client and its ledger, simulated clients.
"""
