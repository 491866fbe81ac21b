package windrow;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.*;
import org.apache.hadoop.fs.*;

/** The hosts that hold the files of a folder, in one call for all of its files. */
public final class FileHosts {
    /** Returns the name of each file, and its hosts with a blank after each; NUL ends each of them. */
    public String inFolder(FileSystem files, Path folder) throws IOException {
        StringBuilder text = new StringBuilder();
        RemoteIterator entries;
        try {
            entries = files.listLocatedStatus(folder);
        } catch (FileNotFoundException error) {
            return "";
        }
        while (entries.hasNext()) {
            LocatedFileStatus file = (LocatedFileStatus) entries.next();
            if (file.isFile()) {
                text.append(file.getPath().getName()).append('\0');
                text.append(ofBlocks(file.getBlockLocations())).append('\0');
            }
        }
        return text.toString();
    }

    /** Returns the hosts that hold at least half of some blocks, with a blank after each. */
    public String ofBlocks(BlockLocation[] blocks) throws IOException {
        TreeMap bytesByHost = new TreeMap();
        long total = 0;
        for (int b = 0; b < blocks.length; b++) {
            total += blocks[b].getLength();
            String[] hosts = blocks[b].getHosts();
            String[] racks = blocks[b].getTopologyPaths();
            for (int h = 0; h < hosts.length; h++) {
                // Local disks and object stores, which have no hosts, return these names.
                if (hosts[h].equals("localhost") || hosts[h].equals("127.0.0.1")) continue;
                String rack = "";
                if (racks != null && racks.length == hosts.length) {
                    // The rack is followed by an address, but hosts are known by name.
                    rack = racks[h].substring(0, racks[h].lastIndexOf('/') + 1);
                }
                String host = rack.equals("/default-rack/") ? hosts[h] : rack + hosts[h];
                Long earlier = (Long) bytesByHost.get(host);
                long more = blocks[b].getLength() + (earlier == null ? 0 : earlier.longValue());
                bytesByHost.put(host, Long.valueOf(more));
            }
        }
        StringBuilder text = new StringBuilder();
        for (Iterator entries = bytesByHost.entrySet().iterator(); entries.hasNext(); ) {
            Map.Entry entry = (Map.Entry) entries.next();
            if (2 * ((Long) entry.getValue()).longValue() >= total) {
                text.append((String) entry.getKey()).append(' ');
            }
        }
        return text.toString();
    }
}
