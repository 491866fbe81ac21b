package windrow;

import java.io.ByteArrayInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.SparkSession;

/** Where the rows of a pack lie, as its footer says. Runs on the driver only. */
final class PackFooter {
    private static final int MOST_KEPT = 1000;
    private static final int TAIL_BYTES = 8;
    private static final byte[] MAGIC = {'P', 'A', 'R', '1'};
    // Mostly the whole footer, in one request.
    private static final int FIRST_BYTES = 256 << 10;
    // As in `seals.py`.
    private static final byte[] MARK = "windrow.pack\u0018`".getBytes(StandardCharsets.ISO_8859_1);
    private static final int ID_DIGITS = 32;
    private static final int SEAL_DIGITS = 64;
    private static final Map KEPT = Collections.synchronizedMap(new LinkedHashMap());
    /** Packs that a task could not read. */
    private static final Set FAILED = Collections.synchronizedSet(new HashSet());

    /** For each row group, its first row and its first byte; then the number of rows. */
    final long[] firstRows;
    final long[] begins;
    /** For each row group, the byte after its last. */
    final long[] ends;
    private final String state;

    private PackFooter(List blocks, String state) {
        int count = blocks.size();
        this.state = state;
        this.firstRows = new long[count + 1];
        this.begins = new long[count];
        this.ends = new long[count];
        for (int i = 0; i < count; i++) {
            BlockMetaData block = (BlockMetaData) blocks.get(i);
            firstRows[i + 1] = firstRows[i] + block.getRowCount();
            begins[i] = block.getStartingPos();
            ends[i] = begins[i] + block.getCompressedSize();
        }
    }

    int groups() {
        return begins.length;
    }

    /** Returns the footer of a pack that `why` has just read. */
    static PackFooter of(String uri) {
        return (PackFooter) KEPT.get(uri);
    }

    /** Notes that a task could not read a pack: further queries read the files that it holds. */
    static void failed(String name) {
        FAILED.add(name);
    }

    /** Returns for each pack, a line, why it cannot be read: an empty line if it can. */
    static String why(SparkSession session, String packs) {
        String[] all = packs.split("\n");
        final Configuration settings = session.sessionState().newHadoopConf();
        List reads = new ArrayList();
        for (int i = 0; i < all.length; i++) {
            final String[] pack = all[i].split(" ");
            reads.add(FileCheck.THREADS.submit(new Callable() {
                @Override
                public Object call() {
                    return why(
                        pack[0], Long.parseLong(pack[1]), Long.parseLong(pack[2]), settings);
                }
            }));
        }
        StringBuilder reasons = new StringBuilder();
        for (int i = 0; i < reads.size(); i++) {
            try {
                String reason = (String) ((Future) reads.get(i)).get();
                reasons.append(reason.replace('\n', ' ')).append('\n');
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("the query was stopped");
            } catch (ExecutionException error) {
                throw new IllegalStateException(error.getCause());
            }
        }
        return reasons.toString();
    }

    private static String why(String uri, long size, long rows, Configuration settings) {
        if (FAILED.contains(PackRows.name(uri))) return "a task could not read it";
        try {
            Path path = PlannedFiles.path(uri);
            FileSystem system = path.getFileSystem(settings);
            FileStatus status = system.getFileStatus(path);
            if (status.getLen() != size) return "it has " + status.getLen() + " bytes, not " + size;
            String state = status.getLen() + " " + status.getModificationTime();
            PackFooter known = of(uri);
            if (known != null && known.state.equals(state)) return "";
            byte[] footer = read(system, path, size);
            if (!isSealed(footer)) return "its footer is damaged, or of an earlier version";
            ParquetReadOptions options = HadoopReadOptions.builder(settings).build();
            ParquetMetadata metadata = new ParquetMetadataConverter(options).readParquetMetadata(
                new ByteArrayInputStream(footer), ParquetMetadataConverter.NO_FILTER);
            PackFooter read = new PackFooter(metadata.getBlocks(), state);
            if (read.firstRows[read.groups()] != rows) return "it has another number of rows";
            if (!differInMoreThanCase(metadata)) return "names of its columns differ by case alone";
            keep(uri, read);
            return "";
        } catch (FileNotFoundException error) {
            return "it is not there";
        } catch (Exception error) {
            return error.toString();
        }
    }

    private static void keep(String uri, PackFooter footer) {
        synchronized (KEPT) {
            KEPT.put(uri, footer);
            if (KEPT.size() > MOST_KEPT) KEPT.remove(KEPT.keySet().iterator().next());
        }
    }

    private static byte[] read(FileSystem system, Path path, long size) throws IOException {
        FSDataInputStream file = system.open(path);
        try {
            byte[] end = new byte[(int) Math.min(size, FIRST_BYTES)];
            file.readFully(size - end.length, end);
            int at = end.length - TAIL_BYTES;
            if (at < 0) throw new IOException("it is too short");
            int length = 0;
            for (int i = 3; i >= 0; i--) length = length << 8 | end[at + i] & 255;
            for (int i = 0; i < MAGIC.length; i++) {
                if (end[at + 4 + i] != MAGIC[i]) throw new IOException("its end is damaged");
            }
            if (length < 0 || length > size - TAIL_BYTES) throw new IOException("its end is damaged");
            if (length <= at) return Arrays.copyOfRange(end, at - length, at);
            byte[] footer = new byte[length];
            file.readFully(size - TAIL_BYTES - length, footer);
            return footer;
        } finally {
            file.close();
        }
    }

    /** Tells whether a footer has the digest that it had when it was written. */
    private static boolean isSealed(byte[] footer) throws GeneralSecurityException {
        int at = 0;
        while (at + MARK.length + ID_DIGITS + SEAL_DIGITS <= footer.length && !isMark(footer, at)) at++;
        int begin = at + MARK.length + ID_DIGITS;
        if (begin + SEAL_DIGITS > footer.length) return false;
        byte[] blank = (byte[]) footer.clone();
        Arrays.fill(blank, begin, begin + SEAL_DIGITS, (byte) '0');
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(blank);
        for (int i = 0; i < digest.length; i++) {
            if (footer[begin + 2 * i] != Character.forDigit(digest[i] >> 4 & 15, 16)) return false;
            if (footer[begin + 2 * i + 1] != Character.forDigit(digest[i] & 15, 16)) return false;
        }
        return true;
    }

    private static boolean isMark(byte[] footer, int at) {
        for (int i = 0; i < MARK.length; i++) if (footer[at + i] != MARK[i]) return false;
        return true;
    }

    /** Spark takes columns whose names differ only by case for the same. */
    private static boolean differInMoreThanCase(ParquetMetadata metadata) {
        List columns = metadata.getFileMetaData().getSchema().getFields();
        Set names = new HashSet();
        for (int i = 0; i < columns.size(); i++) {
            names.add(((Type) columns.get(i)).getName().toLowerCase(Locale.ROOT));
        }
        return names.size() == columns.size();
    }
}
